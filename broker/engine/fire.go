package engine

import (
	"errors"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/leader"
)

// Deliverer delivers to targets. Deliver calls done exactly once, on any goroutine. Recall ends the deliveries of an
// owner that were not sent yet.
type Deliverer interface {
	Deliver(m deliver.Message, done func(deliver.Result))
	Recall(deliver.Owner)
}

// delivered is the event that a delivery has ended.
type delivered struct {
	*flight
	result deliver.Result
	at     leader.Time // when the target had the message; valid only if the message was delivered
}

func (w *worker) fire(f *flight, m moment) {
	if w.stopped.Load() {
		return // the next owner delivers the message
	}
	w.flights.unanswered++
	w.earlyCheck.Observe(w.clock.Base(), f.request.Due, m.local)
	d := deliver.Message{
		Target: f.request.Target, Mode: f.request.Mode, Data: f.Data, Size: f.size,
		PutHeader: f.request.PutTargetHeader, // the request is unchanged until done is called
		RateKey:   f.request.RateKey, Turn: f.request.Reservation, Repeated: f.tries > 0, Owner: w,
	}
	if expires := f.request.Expires; !expires.IsZero() {
		d.Expires = m.local.Add(leader.At(expires).Sub(m.now))
	}
	// The time of the delivery is computed from the proof of the leader's time that the worker has now. A later proof
	// may be weaker, and could put the time of the delivery before the due time.
	now, local := m.now, m.local
	w.engine.Deliver.Deliver(d, func(r deliver.Result) {
		w.mail.Put(delivered{f, r, now.Add(r.Time.Sub(local))})
	})
}

// MayDeliver reports whether the deliverer may send a waiting message of this lane: this instance owns the lane, and
// the worker is not stopping. MayDeliver is safe for concurrent use.
func (w *worker) MayDeliver() bool { return !w.stopped.Load() && w.lease.Held() }

func (e delivered) handle(w *worker, m moment) {
	w.flights.unanswered--
	f, r := e.flight, e.result
	if isSilence(r) {
		f.silences++
	}
	count := r.Count
	r = judgeSilence(f, r)
	if r.Outcome == deliver.Refused {
		f.silences = 0
	}
	if !errors.Is(r.Err, deliver.ErrDraining) && !errors.Is(r.Err, deliver.ErrHalted) {
		w.engine.Tally.Outcomes[r.Outcome].Add(1)
		count.Note(r.Outcome)
	}
	if r.Outcome == deliver.Delivered {
		w.counts.Delivered.Add(1)
		late := w.lateness(f, e.at)
		w.engine.Tally.Lateness[w.lane.Kind].Observe(late)
		w.recordDelivered(f, e.at, late)
	}
	w.apply(f, afterDelivery(w.plan, m, f, r, r.RetryAt.Sub(m.local)), m)
}

// lateness returns the time from the due time until the target had the message, by the leader's clock. The field Time
// of deliver.Result defines when the target has the message.
//
// For a message that waited for its target's rate, the lateness begins at the reserved send time. For a message that
// waited for the end of a pause, the lateness begins at the resumption. Such waits must not alert an operator.
func (w *worker) lateness(f *flight, at leader.Time) time.Duration {
	since := leader.At(f.request.Due)
	if f.request.Reservation != "" {
		since = f.nextAttempt()
	}
	if w.plan.resumed.After(since) {
		since = w.plan.resumed
	}
	return max(0, at.Sub(since))
}
