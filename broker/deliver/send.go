package deliver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// messagePool holds empty messages, each with an empty header. The client library keeps no reference to a published
// message, so a later delivery reuses the message and its header. A new header would take 400 bytes.
var messagePool = sync.Pool{New: func() any { return &nats.Msg{Header: make(nats.Header)} }}

// sendWhenReady sends the deliveries in readyQueue whenever a result has made room, until ctx ends. The goroutine that
// handles an answer does not send: see "Fairness" in the package documentation.
func (d *Deliverer) sendWhenReady(ctx context.Context) {
	d.setSender(true)
	for {
		select {
		case <-ctx.Done():
			d.setSender(false)
			d.sendReady() // deliveries that became ready before setSender
			return
		case <-d.readySignal:
			d.sendReady()
		}
	}
}

func (d *Deliverer) setSender(runs bool) {
	d.mu.Lock()
	d.senderRuns = runs
	d.mu.Unlock()
}

// sendReady sends the deliveries in readyQueue. Only one goroutine at a time sends them, so that they keep their order.
// If another goroutine is already sending, sendReady returns immediately.
func (d *Deliverer) sendReady() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sending {
		return
	}
	d.sending = true
	for dl := d.groups.next(); dl != nil; dl = d.groups.next() {
		stopped := d.stoppedLocked(dl.Target)
		d.mu.Unlock()
		if stopped != nil {
			d.finish(dl, decided(Result{Outcome: Unknown, Err: stopped}), time.Now())
		} else {
			d.send(dl)
		}
		d.mu.Lock()
		dl.target.unsentDeliveries--
	}
	d.sending = false
}

// send publishes a delivery, or finishes a delivery that must not be sent any more.
func (d *Deliverer) send(dl *delivery) {
	now := time.Now()
	switch {
	case dl.Owner != nil && !dl.Owner.MayDeliver():
		d.finish(dl, decided(Result{Outcome: Unknown, Err: ErrDraining}), now)
		return
	case !dl.Expires.IsZero() && now.After(dl.Expires):
		d.finish(dl, decided(Result{Outcome: Expired}), now)
		return
	}
	dl.sent, dl.timeout, dl.mode = now, jsapi.Timeout, d.cfg.Modes.mode(dl.Mode, dl.Target)
	if dl.mode == message.ModeRequest {
		dl.timeout = d.cfg.ReplyTimeout
	}
	m := messagePool.Get().(*nats.Msg)
	m.Subject, m.Data = dl.Target, dl.Data
	if dl.Request != nil {
		dl.Request.PutTargetHeader(message.Header(m.Header))
	}
	onAnswer := func(answer *nats.Msg, err error) (pending bool) {
		now := time.Now()
		e := d.gather(dl, answer, err, now)
		v := judge(e)
		v.result.Time = e.at
		d.act(dl, v, now)
		return v.pending
	}
	if d.mustNoticeSilence(dl, now) {
		d.box.PublishReportingSilence(m, dl.timeout, onAnswer)
	} else {
		d.box.Publish(m, dl.timeout, onAnswer)
	}
	clear(m.Header)
	*m = nats.Msg{Header: m.Header}
	messagePool.Put(m)
}

// mustNoticeSilence reports whether the inbox must report a silence of the target, because the silence could count as a
// delivery. The report costs a flush.
func (d *Deliverer) mustNoticeSilence(dl *delivery, now time.Time) bool {
	switch dl.mode {
	case message.ModeStream, message.ModeRequest:
		return false
	case message.ModeCore:
		return true
	}
	return !d.acknowledges(dl, now)
}

func (d *Deliverer) act(dl *delivery, v verdict, now time.Time) {
	if v.renewList {
		d.lookup.renew()
	}
	switch {
	case !v.pending:
		d.finish(dl, v, now)
	case v.ignoredStream != "":
		dl.ignoredStream, dl.arrivedBy = v.ignoredStream, v.result.Time
	}
}

// finish ends a delivery: it gives the result to the caller of Deliver, and lets waiting deliveries pass.
func (d *Deliverer) finish(dl *delivery, v verdict, now time.Time) {
	d.mu.Lock()
	if v.ackedBy != "" {
		dl.target.stream, dl.target.streamAt = v.ackedBy, now
		dl.group.ackedSubject, dl.group.ackedAt = dl.target.subject, now
	}
	if countsAsAnswer(v.result) {
		d.groups.countAnswer(dl, now)
	}
	d.groups.remove(dl)
	dl.target.deliveries--
	ready, senderRuns := len(d.groups.readyQueue) > 0, d.senderRuns
	d.mu.Unlock()
	v.result.Count = dl.target.count
	dl.done(v.result)
	switch {
	case !ready:
	case senderRuns:
		signal(d.readySignal)
	default: // sendWhenReady does not run, so the ready deliveries are sent here
		d.sendReady()
	}
}

// noAnswer has the errors of messages that timed out, lost their connection, or must not be sent.
var noAnswer = []error{acks.ErrTimeout, acks.ErrDisconnected, acks.ErrClosed, ErrDraining, ErrHalted}

// countsAsAnswer reports whether a result counts as an answer when the target's groups are judged as fast, slow or
// silent.
func countsAsAnswer(r Result) bool {
	return r.Outcome != Expired &&
		(r.Err == nil || !slices.ContainsFunc(noAnswer, func(err error) bool { return errors.Is(r.Err, err) }))
}
