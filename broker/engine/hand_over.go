package engine

import (
	"context"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// This file hands over the messages whose targets have not answered when the instance stops. Without that, a silent
// target would keep a stand-by waiting for the grace period.
//
// Such a message is copied into a retry lane, and has arrived there: so the lease can be released. The copy is due when
// this instance waits no longer for the answer. If the target answers in time, this instance deletes the copy. The next
// instance has read the copy meanwhile, so it looks for the copy once more before it delivers it. So nothing is lost if
// this process is killed, and nothing is sent twice if the target answers within the grace period.

const (
	// handOverAfter is the time for which a stopping worker waits for answers before it hands over. Most targets answer
	// within milliseconds.
	handOverAfter = 250 * time.Millisecond
	// handOverMargin is the time from the last answer for which this instance waits until the copies are due. In this
	// time, it deletes the copies of delivered messages.
	handOverMargin = time.Second
	// handOverReason is the reason why a copy waits. By it, the next instance recognises the copy.
	handOverReason = "its target had not answered when the active instance stopped"
)

// handOver is the copy of a message whose delivery has no result yet.
type handOver struct {
	*publish
	sequence uint64     // of the copy in its lane; zero until the lane has stored it
	result   *delivered // nil until the delivery has a result
}

// handedOver is the event that a retry lane has answered the publish of a copy.
type handedOver struct {
	*flight
	storeAnswer
}

// handOverOpen copies the messages whose deliveries have no result, if another instance waits for the lease. End is the
// time until which the worker waits for answers.
func (w *worker) handOverOpen(m moment, end time.Time) {
	select {
	case <-w.lease.Done(): // this instance yields: it cannot work, and the next one repeats the deliveries immediately
		return
	default:
	}
	if !w.lease.Held() || !w.lease.HasSuccessor() {
		return
	}
	wait := end.Sub(m.local) + handOverMargin
	level, _ := w.plan.RetryLadder.LongestFit(wait) // the copy waits there until it is due: see nextStep
	for _, f := range w.flights.open {
		if f.handOver == nil && !w.isLimited(f.request) {
			request := f.request.WithDeferral(m.now.Add(wait).Stamp(), handOverReason)
			request.AllowedRefusals = w.plan.maxAttempts(f.request)
			f.handOver = &handOver{publish: w.publishOf(f, step{kind: retry, level: level, request: &request})}
			w.publish(f.handOver.stream, w.message(f, f.handOver.publish), func(a storeAnswer) { w.mail.Put(handedOver{f, a}) })
		}
	}
}

// isLimited reports whether the deliveries in progress of the message's target or key have a limit. The next instance
// would not count this delivery.
func (w *worker) isLimited(r message.Request) bool {
	s := w.engine.Settings
	return message.Rules[int](s.InProgress).Lookup(r.Target, 0) > 0 ||
		r.RateKey != "" && message.Rules[int](s.InProgressByKey).Lookup(r.RateKey, 0) > 0
}

func (e handedOver) handle(w *worker, m moment) {
	w.flights.unanswered--
	f, h := e.flight, e.handOver
	if e.Outcome() != jsapi.Stored { // the delivery counts as before
		f.handOver = nil
		if h.result != nil {
			h.result.handle(w, m)
		}
		return
	}
	h.sequence = e.Ack.Sequence
	f.sent = h.publish
	w.apply(f, step{kind: arrive}, m)
	if h.result == nil {
		w.flights.endDelivery(f)
		w.flights.late++
		return
	}
	w.endHandOver(f)
}

// endHandOver ends the delivery of a message that was copied. It deletes the copy if the target has the message.
func (w *worker) endHandOver(f *flight) {
	h := f.handOver
	w.noteResult(h.result, h.result.result)
	if h.result.result.Outcome != deliver.Delivered {
		return
	}
	w.flights.late++
	header, keys, api := h.header(), w.engine.Keys, w.engine.JetStream.API
	w.request(jsapi.Timeout, func(ctx context.Context) event {
		found, err := api.Message(ctx, h.stream, h.sequence)
		if err == nil && keys.Recognizes(header, found) {
			err = api.Delete(ctx, h.stream, h.sequence)
		}
		return copyDeleted{f, err}
	})
}

// copyDeleted is the event that a copy was deleted, or that this failed.
type copyDeleted struct {
	*flight
	err error
}

func (e copyDeleted) handle(w *worker, _ moment) {
	w.flights.late--
	if e.err != nil {
		w.log.Warn("cannot delete the copy of a message that was delivered while this instance stopped; the next one "+
			"delivers it again, under the same id", "id", e.request.ID, "err", e.err)
	}
}

// awaitLate waits for the results of the deliveries that were handed over, after the release of the lease.
func (w *worker) awaitLate() {
	for w.flights.late > 0 && time.Now().Before(w.answersUntil) {
		w.await(nil, nil, time.Until(w.answersUntil))
		w.takeMail(time.Now())
	}
	w.wg.Wait()
}

// unverified reports whether the message is a copy that another instance has handed over, and may have deleted since it
// was read.
func (f *flight) unverified() bool {
	return f.request.DeferralReason == handOverReason && !f.verified
}

// afterVerification decides after the worker has looked for a copy in its lane.
func afterVerification(p plan, m moment, f *flight, exists bool, err error) step {
	switch {
	case err != nil:
		return backOffStep(m, f)
	case !exists:
		return step{kind: arrive}
	}
	f.verified = true
	return nextStep(p, m, f)
}
