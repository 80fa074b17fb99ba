package deliver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/outbox"
)

// ackMemory is how long an acknowledgement proves that the target is a stream's. After it, a stream that was deleted is
// no longer waited for, and core subscribers that are left on the subject are believed.
const ackMemory = time.Minute

// fromStream waits for an acknowledgement, whatever else comes.
func (d *Deliverer) fromStream(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if err != nil {
		return d.noAnswer(dl, err)
	}
	ack, ok := jsapi.ParseAck(answer)
	if !ok || ack.Code == 0 && ack.Sequence == 0 || d.foreign(dl, ack) {
		return true
	}
	return d.acked(dl, ack)
}

// fromCore takes any sign of life, and silence.
func (d *Deliverer) fromCore(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if err != nil && !errors.Is(err, outbox.ErrSilent) {
		return d.noAnswer(dl, err)
	}
	if ack, ok := noResponders(answer); ok {
		return d.acked(dl, ack)
	}
	d.finish(dl, Result{Outcome: Delivered})
	return false
}

// noResponders reads the server's own answer where nobody listens.
func noResponders(answer *nats.Msg) (jsapi.Ack, bool) {
	if answer == nil || len(answer.Data) > 0 {
		return jsapi.Ack{}, false
	}
	return jsapi.ParseAck(answer)
}

// Headers by which a service says that it failed: https://github.com/nats-io/nats-architecture-and-design, ADR-32.
const (
	serviceError     = "Nats-Service-Error"
	serviceErrorCode = "Nats-Service-Error-Code"
)

// fromService takes any reply for an acknowledgement but one that says it failed. A stream on the subject acknowledges
// for itself and not for the service: see streamsOwn.
func (d *Deliverer) fromService(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if errors.Is(err, outbox.ErrTimeout) {
		if p := d.streams.now.Load(); dl.ignored != "" && p != nil && !p.at.Before(dl.sent) && !p.listens(dl.ignored, dl.Target) {
			d.finish(dl, Result{Outcome: Delivered}) // it was the service
			return false
		}
		d.finish(dl, Result{Outcome: Refused, Err: err, Reason: fmt.Sprintf("no reply within %s", d.ReplyTimeout)})
		return false
	}
	if err != nil {
		return d.noAnswer(dl, err)
	}
	code, text := answer.Header.Get(serviceErrorCode), answer.Header.Get(serviceError)
	if code != "" || text != "" {
		d.finish(dl, Result{Outcome: Refused, Reason: strings.TrimSpace("the service says " + code + " " + text)})
		return false
	}
	if ack, ok := noResponders(answer); ok {
		return d.acked(dl, ack)
	}
	if d.streamsOwn(dl, answer) {
		return true
	}
	d.finish(dl, Result{Outcome: Delivered})
	return false
}

// streamsOwn reports whether an answer is the acknowledgement or refusal of a stream that listens on the target, and not
// a service's JSON with fields of the same names. As long as the streams are not known, it may be.
func (d *Deliverer) streamsOwn(dl *delivery, answer *nats.Msg) bool {
	ack, ok := jsapi.ParseAck(answer)
	if !ok || ack.Stream == "" || ack.Code == 0 && ack.Sequence == 0 {
		return false
	}
	p := d.streams.fresh()
	if p == nil {
		dl.ignored = ack.Stream
		return true
	}
	return p.listens(ack.Stream, dl.Target)
}

// fromEither decides on what it sees.
func (d *Deliverer) fromEither(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if !errors.Is(err, outbox.ErrSilent) {
		return d.fromStream(dl, answer, err)
	}
	if d.shouldAck(dl) {
		return true
	}
	switch d.streams.on(dl.Target) {
	case nobody:
		if d.ackedElsewhere(dl) {
			return true
		}
		d.finish(dl, Result{Outcome: Delivered})
		return false
	case mute:
		d.finish(dl, Result{Outcome: Delivered})
		return false
	}
	return true // the box asks again
}

// shouldAck reports whether a stream is known to acknowledge for the target.
func (d *Deliverer) shouldAck(dl *delivery) bool {
	d.mu.Lock()
	lately := dl.target.stream != "" && time.Since(dl.target.streamAt) < ackMemory
	d.mu.Unlock()
	if lately {
		return true
	}
	h := d.streams.holder(dl.Target)
	return h != nil && h.acks
}

// ackedElsewhere reports whether a stream that the account does not list acknowledged not long ago for the target's group.
// It lies in another account or domain, or behind a subject mapping, and what else it listens on cannot be known.
func (d *Deliverer) ackedElsewhere(dl *delivery) bool {
	d.mu.Lock()
	subject, lately := dl.group.acked, time.Since(dl.group.ackedAt) < ackMemory
	d.mu.Unlock()
	return subject != "" && lately && d.streams.on(subject) == nobody
}

// acked finishes with what a stream, or the server, said.
func (d *Deliverer) acked(dl *delivery, ack jsapi.Ack) (wait bool) {
	switch {
	case ack.Code == jsapi.CodeInFlight, ack.Code == jsapi.CodeTooMany:
		// Nobody refused it: the first copy is not stored yet, or the stream is busy.
		d.finish(dl, Result{Outcome: Unknown, Err: errors.New(ack.Description)})
	case ack.NoRoom():
		d.finish(dl, Result{Outcome: NoRoom, Code: ack.Code, Reason: fmt.Sprintf("%s (%d)", ack.Description, ack.Code)})
	case ack.Refused():
		d.finish(dl, Result{Outcome: Refused, Code: ack.Code, Reason: fmt.Sprintf("%s (%d)", ack.Description, ack.Code)})
	default:
		d.mu.Lock()
		now := time.Now()
		dl.target.stream, dl.target.streamAt = ack.Stream, now
		dl.group.acked, dl.group.ackedAt = dl.Target, now
		d.mu.Unlock()
		d.finish(dl, Result{Outcome: Delivered})
	}
	return false
}

// foreign reports whether an acknowledgement comes from another stream than the one known to hold the target, or from one
// of the broker's own: a subscriber of the target may write what it likes into our inbox, and have the server put its
// acknowledgements of what it publishes for a delay there.
func (d *Deliverer) foreign(dl *delivery, ack jsapi.Ack) bool {
	if d.Ours != nil && d.Ours(ack.Stream) {
		return true
	}
	h := d.streams.holder(dl.Target)
	if h == nil || ack.Stream == "" || ack.Stream == h.name {
		return false
	}
	d.streams.renew() // or the subject has another stream now
	return true
}

// noAnswer finishes a delivery that the target said nothing about.
func (d *Deliverer) noAnswer(dl *delivery, err error) (wait bool) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		d.finish(dl, Result{Outcome: Refused, Code: jsapi.CodeTooLarge, Reason: "larger than the server's max_payload"})
	case errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrBadHeaderMsg):
		d.finish(dl, Result{Outcome: Refused, Reason: err.Error()})
	default:
		d.finish(dl, Result{Outcome: Unknown, Err: err})
	}
	return false
}
