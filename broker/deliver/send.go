package deliver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// outgoing holds messages to publish, with an empty header. The client library has written a message into its buffer
// when a publish returns, so the next delivery uses the same one: the header alone would take 400 bytes of each.
var outgoing = sync.Pool{New: func() any { return &nats.Msg{Header: make(nats.Header)} }}

// sendWhenReady sends waiting deliveries whenever an answer has made room for them, until ctx ends. It is not done on
// the goroutine that handles the answers: see "Fairness" in the package documentation.
func (d *Deliverer) sendWhenReady(ctx context.Context) {
	d.setSender(true)
	for {
		select {
		case <-ctx.Done():
			d.setSender(false)
			d.sendReady() // deliveries that became ready before
			return
		case <-d.roomy:
			d.sendReady()
		}
	}
}

func (d *Deliverer) setSender(runs bool) {
	d.mu.Lock()
	d.sender = runs
	d.mu.Unlock()
}

// sendReady sends the deliveries that have waited and have now passed all groups. Only one goroutine sends them at a
// time. Another goroutine that has made room meanwhile leaves the sending to that one.
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
		dl.target.unsent--
	}
	d.sending = false
}

// send publishes one delivery. It counts as outstanding until finish.
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
	dl.sent, dl.wait, dl.mode = now, jsapi.Timeout, d.cfg.Modes.of(dl.Mode, dl.Target)
	if dl.mode == message.ModeRequest {
		dl.wait = d.cfg.ReplyTimeout
	}
	m := outgoing.Get().(*nats.Msg)
	m.Subject, m.Data = dl.Target, dl.Data
	if dl.PutHeader != nil {
		dl.PutHeader(message.Header(m.Header))
	}
	result := func(answer *nats.Msg, err error) (again bool) {
		now := time.Now()
		e := d.gather(dl, answer, err, now)
		v := judge(e)
		v.result.At = e.at
		return d.act(dl, v, now)
	}
	if d.listens(dl, now) {
		d.box.PublishListening(m, dl.wait, result)
	} else {
		d.box.Publish(m, dl.wait, result)
	}
	clear(m.Header)
	*m = nats.Msg{Header: m.Header}
	outgoing.Put(m)
}

// listens reports whether silence could count as a delivery. To listen for it costs a flush.
func (d *Deliverer) listens(dl *delivery, now time.Time) bool {
	switch dl.mode {
	case message.ModeStream, message.ModeRequest:
		return false
	case message.ModeCore:
		return true
	}
	return !d.acknowledges(dl, now)
}

// act carries out a verdict. It reports whether the inbox must ask again.
func (d *Deliverer) act(dl *delivery, v verdict, now time.Time) (again bool) {
	if v.renew {
		d.lookup.renew()
	}
	if v.again {
		if v.ignored != "" {
			dl.ignored, dl.proved = v.ignored, v.result.At
		}
		return true
	}
	d.finish(dl, v, now)
	return false
}

// finish gives the result, and makes room for the next delivery, which sendWhenReady sends.
func (d *Deliverer) finish(dl *delivery, v verdict, now time.Time) {
	d.mu.Lock()
	if v.acked != "" {
		dl.target.stream, dl.target.streamAt = v.acked, now
		dl.group.acked, dl.group.ackedAt = dl.target.subject, now
	}
	if answered(v.result) {
		d.groups.answered(dl, now)
	}
	d.groups.leave(dl)
	dl.target.open--
	more, sender := len(d.groups.ready) > 0, d.sender
	d.mu.Unlock()
	v.result.Count = dl.target.count
	dl.done(v.result)
	switch {
	case !more:
	case sender:
		select {
		case d.roomy <- struct{}{}:
		default:
		}
	default: // sendWhenReady has ended: nothing may be left waiting
		d.sendReady()
	}
}

// answered reports whether a result shows how fast the target is: the message was sent, and did not time out.
func answered(r Result) bool {
	return r.Outcome != Expired && !errors.Is(r.Err, ErrDraining) && !errors.Is(r.Err, ErrHalted) &&
		!errors.Is(r.Err, acks.ErrTimeout)
}
