package deliver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/reply"
)

// ackMemory is how long an acknowledgement proves that the target is a stream's. After it, a stream that was deleted is
// no longer waited for, and core subscribers that are left on the subject are believed.
const ackMemory = time.Minute

// fromStream waits for an acknowledgement, whatever else comes.
func (d *Deliverer) fromStream(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if err != nil {
		return d.noAnswer(dl, err)
	}
	ack, ok := reply.ParseAck(answer)
	if !ok || d.foreign(dl, ack) {
		return true
	}
	return d.acked(dl, ack)
}

// fromCore takes any sign of life, and silence.
func (d *Deliverer) fromCore(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if err != nil && !errors.Is(err, reply.ErrSilent) {
		return d.noAnswer(dl, err)
	}
	if answer != nil {
		if ack, ok := reply.ParseAck(answer); ok && ack.Code == 503 {
			return d.acked(dl, ack)
		}
	}
	d.finish(dl, Result{Outcome: Delivered})
	return false
}

// Headers by which a service says that it failed: https://github.com/nats-io/nats-architecture-and-design, ADR-32.
const (
	serviceError     = "Nats-Service-Error"
	serviceErrorCode = "Nats-Service-Error-Code"
)

// fromService takes any reply for an acknowledgement but one that says it failed. A stream on the subject acknowledges
// for itself and not for the service.
func (d *Deliverer) fromService(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if errors.Is(err, reply.ErrTimeout) {
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
	if ack, ok := reply.ParseAck(answer); ok {
		if ack.Code == 503 {
			return d.acked(dl, ack)
		}
		return true
	}
	d.finish(dl, Result{Outcome: Delivered})
	return false
}

// fromEither decides on what it sees.
func (d *Deliverer) fromEither(dl *delivery, answer *nats.Msg, err error) (wait bool) {
	if !errors.Is(err, reply.ErrSilent) {
		return d.fromStream(dl, answer, err)
	}
	if d.acksLately(dl) {
		return true
	}
	switch s := d.streams.known(dl.Target); {
	case s == nil:
		return true // being looked up; the box will ask again
	case s.name == "", s.noAck:
		d.finish(dl, Result{Outcome: Delivered})
		return false
	}
	return true
}

// acksLately reports whether a stream acknowledged for the target not long ago.
func (d *Deliverer) acksLately(dl *delivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return dl.target.stream != "" && time.Since(dl.target.streamAt) < ackMemory
}

// acked finishes with what a stream, or the server, said.
func (d *Deliverer) acked(dl *delivery, ack reply.Ack) (wait bool) {
	switch {
	case ack.Code == reply.CodeInFlight, ack.Code == reply.CodeTooMany:
		// Nobody refused it: the first copy is not stored yet, or the stream is busy.
		d.finish(dl, Result{Outcome: Unknown, Err: errors.New(ack.Description)})
	case ack.NoRoom():
		d.finish(dl, Result{Outcome: NoRoom, Code: ack.Code, Reason: fmt.Sprintf("%s (%d)", ack.Description, ack.Code)})
	case ack.Refused():
		d.finish(dl, Result{Outcome: Refused, Code: ack.Code, Reason: fmt.Sprintf("%s (%d)", ack.Description, ack.Code)})
	default:
		d.mu.Lock()
		dl.target.stream, dl.target.streamAt = ack.Stream, time.Now()
		d.mu.Unlock()
		d.finish(dl, Result{Outcome: Delivered})
	}
	return false
}

// foreign reports whether an acknowledgement comes from another stream than the one known to hold the target, or from one
// of the broker's own: a subscriber of the target may write what it likes into our inbox, and have the server put its
// acknowledgements of what it publishes for a delay there.
func (d *Deliverer) foreign(dl *delivery, ack reply.Ack) bool {
	if d.Ours != nil && d.Ours(ack.Stream) {
		return true
	}
	s := d.streams.cached(dl.Target)
	return s != nil && s.name != "" && ack.Stream != "" && ack.Stream != s.name
}

// noAnswer finishes a delivery that the target said nothing about.
func (d *Deliverer) noAnswer(dl *delivery, err error) (wait bool) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		d.finish(dl, Result{Outcome: Refused, Code: reply.CodeTooLarge, Reason: "larger than the server's max_payload"})
	case errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrBadHeaderMsg):
		d.finish(dl, Result{Outcome: Refused, Reason: err.Error()})
	default:
		d.finish(dl, Result{Outcome: Unknown, Err: err})
	}
	return false
}
