package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// sendWhenReady sends what has waited, whenever an answer has made room for it, until ctx ends. To send on the
// goroutine that takes in the answers would do both for one message after the other: all answers come on that one.
func (d *Deliverer) sendWhenReady(ctx context.Context) {
	d.setSender(true)
	for {
		select {
		case <-ctx.Done():
			d.setSender(false)
			d.sendReady() // what came before
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
			d.finish(dl, decided(Result{Outcome: Unknown, Err: stopped}))
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
		d.finish(dl, decided(Result{Outcome: Unknown, Err: ErrDraining}))
		return
	case !dl.Expires.IsZero() && now.After(dl.Expires):
		d.finish(dl, decided(Result{Outcome: Expired}))
		return
	}
	dl.sent, dl.wait, dl.mode = now, jsapi.Timeout, d.cfg.Modes.of(dl.Mode, dl.Target)
	if dl.mode == message.ModeRequest {
		dl.wait = d.cfg.ReplyTimeout
	}
	m := &nats.Msg{Subject: dl.Target, Data: dl.Data}
	if dl.Header != nil {
		m.Header = dl.Header()
	}
	result := func(answer *nats.Msg, err error) (again bool) {
		e := d.gather(dl, answer, err)
		v := judge(e)
		v.result.At = e.at
		return d.act(dl, v)
	}
	if d.listens(dl) {
		d.box.PublishListening(m, dl.wait, result)
	} else {
		d.box.Publish(m, dl.wait, result)
	}
}

// listens reports whether silence could mean anything. To listen for it costs a flush.
func (d *Deliverer) listens(dl *delivery) bool {
	switch dl.mode {
	case message.ModeStream, message.ModeRequest:
		return false
	case message.ModeCore:
		return true
	}
	return !d.acknowledges(dl)
}

// act does what a verdict says. It reports whether the inbox must ask again.
func (d *Deliverer) act(dl *delivery, v verdict) (again bool) {
	if v.renew {
		d.lookup.renew()
	}
	if v.again {
		if v.ignored != "" {
			dl.ignored, dl.proved = v.ignored, v.result.At
		}
		return true
	}
	d.finish(dl, v)
	return false
}

// finish gives the result, and makes room for the next delivery, which sendWhenReady sends.
func (d *Deliverer) finish(dl *delivery, v verdict) {
	d.mu.Lock()
	if v.acked != "" {
		now := time.Now()
		dl.target.stream, dl.target.streamAt = v.acked, now
		dl.group.acked, dl.group.ackedAt = dl.target.subject, now
	}
	if answered(v.result) {
		d.groups.answered(dl)
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
	default: // the answers of the end, which must leave nothing behind
		d.sendReady()
	}
}

// answered reports whether a result says something about how fast the target is: it was asked, and the wait for its
// answer has not run out.
func answered(r Result) bool {
	return r.Outcome != Expired && !errors.Is(r.Err, ErrDraining) && !errors.Is(r.Err, ErrHalted) &&
		!errors.Is(r.Err, acks.ErrTimeout)
}
