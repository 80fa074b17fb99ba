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
		return // the next instance delivers the message
	}
	w.flights.beginDelivery(f)
	w.earlyCheck.Observe(w.clock.Base(), f.request.Due, m.local)
	d := deliver.Message{
		Target: f.request.Target, Mode: f.request.Mode, Data: f.Data, Size: f.size,
		Request: &f.request, // unchanged until done is called
		RateKey: f.request.RateKey, Turn: f.request.Reservation, Repeated: f.tries > 0, Owner: w,
	}
	if expires := f.request.Expires; !expires.IsZero() {
		d.Expires = m.local.Add(leader.At(expires).Sub(m.now))
	}
	// The time of the delivery is computed from the proof of the leader's time that the worker has now. A later proof
	// may be weaker, and could put the time of the delivery before the due time.
	now, local := m.now, m.local
	w.engine.Deliver.Deliver(d, func(r deliver.Result) {
		e := &delivered{f, r, now.Add(r.Time.Sub(local))}
		if r.Outcome == deliver.Delivered {
			w.mail.putLater(e)
		} else {
			w.mail.Put(e)
		}
	})
}

// MayDeliver reports whether the deliverer may send a waiting message of this lane: this instance is active, and the
// worker is not stopping. MayDeliver is safe for concurrent use.
func (w *worker) MayDeliver() bool { return !w.stopped.Load() && w.lease.Held() }

func (e *delivered) handle(w *worker, m moment) {
	f, r := e.flight, e.result
	if f.openPlace > 0 {
		w.flights.endDelivery(f)
	}
	if h := f.handOver; h != nil {
		h.result = e
		if h.sequence > 0 {
			w.flights.late--
			w.endHandOver(f)
		}
		return
	}
	if isSilence(r) {
		f.silences++
	}
	r = judgeSilence(f, r)
	if r.Outcome == deliver.Refused {
		f.silences = 0
	}
	w.noteResult(e, r)
	w.apply(f, afterDelivery(w.plan, m, f, r, r.RetryAt.Sub(m.local)), m)
}

// noteResult counts and records the result of a delivery, as it was judged.
func (w *worker) noteResult(e *delivered, r deliver.Result) {
	if !errors.Is(r.Err, deliver.ErrDraining) && !errors.Is(r.Err, deliver.ErrHalted) {
		w.engine.Tally.Outcomes[r.Outcome].Add(1)
		e.result.Count.Note(r.Outcome)
	}
	if r.Outcome == deliver.Delivered {
		w.counts.Delivered.Add(1)
		late := w.lateness(e.flight, e.at)
		w.engine.Tally.Lateness[w.lane.Kind].Observe(late)
		w.recordDelivered(e.flight, e.at, late)
	}
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
