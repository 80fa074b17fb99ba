package deliver

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// ackMemory is the time for which an acknowledgement proves that a stream takes the target's messages. After that time,
// silence may count as a delivery to core subscribers again, because the stream may have been deleted.
const ackMemory = time.Minute

// gather collects the evidence on a delivery: the answer, or the error if there is no answer, and the facts about the
// target. Now is the time of the answer or of the error.
func (d *Deliverer) gather(dl *delivery, answer *nats.Msg, err error, now time.Time) evidence {
	e := evidence{mode: dl.mode, timeout: dl.timeout, answer: answer, err: err}
	if silence, ok := errors.AsType[*acks.Silence](err); ok && dl.arrivedBy.IsZero() {
		dl.arrivedBy = silence.ConfirmedAt
	}
	if e.at = dl.arrivedBy; err == nil {
		e.at = now
	}
	switch {
	case err == nil:
		d.gatherAnswer(dl, &e, now)
	case errors.Is(err, acks.ErrSilent), errors.Is(err, acks.ErrTimeout):
		d.gatherSilence(dl, &e, now)
	}
	return e
}

func (d *Deliverer) gatherAnswer(dl *delivery, e *evidence, now time.Time) {
	if dl.mode == message.ModeCore && len(e.answer.Data) > 0 {
		return // mode core counts every answer with data as a delivery
	}
	if e.ack, e.isAck = jsapi.ParseAck(e.answer); !e.isAck {
		return
	}
	switch dl.mode {
	case message.ModeCore:
	case message.ModeRequest:
		if e.ack.Stream != "" {
			e.claim = claimOf(d.lookup.validSnapshot(now), e.ack.Stream, dl.Target)
		}
	default:
		e.ownStream = d.cfg.Ours != nil && d.cfg.Ours(e.ack.Stream)
		e.listener = d.lookup.listener(dl.Target, now)
	}
}

func (d *Deliverer) gatherSilence(dl *delivery, e *evidence, now time.Time) {
	e.forbidden, e.unattributed = d.publishRefused(dl)
	switch dl.mode {
	case message.ModeStream, message.ModeCore: // the verdict does not depend on who listens
	case message.ModeRequest:
		if s := d.lookup.snapshot.Load(); dl.ignoredStream != "" && s != nil && !s.at.Before(dl.sent) {
			e.claim = claimOf(s, dl.ignoredStream, dl.Target)
		}
	default:
		if e.acknowledges = d.acknowledges(dl, now); !e.acknowledges {
			e.listenerKind = d.lookup.listenerKind(dl.Target, now)
			e.unlistedAcks = e.listenerKind == kindNone && d.unlistedAcknowledged(dl, now)
		}
	}
}

// claimOf checks against a snapshot whether the stream that an acknowledgement names listens on the target. Without a
// snapshot, the claim is unproven.
func claimOf(s *snapshot, stream, target string) claim {
	if s == nil {
		return unproven
	}
	if ln := s.listener(target); ln != nil && ln.name == stream {
		return confirmed
	}
	return refuted
}

// acknowledges reports whether a stream has acknowledged a message for the target within ackMemory, or a listed stream
// that acknowledges listens on the target.
func (d *Deliverer) acknowledges(dl *delivery, now time.Time) bool {
	d.mu.Lock()
	recent := dl.target.stream != "" && now.Sub(dl.target.streamAt) < ackMemory
	d.mu.Unlock()
	if recent {
		return true
	}
	ln := d.lookup.listener(dl.Target, now)
	return ln != nil && ln.acks
}

// unlistedAcknowledged reports whether a stream that the account does not list sent the last acknowledgement for the
// target's group, within ackMemory. The subjects of such a stream are unknown, and may include the target.
func (d *Deliverer) unlistedAcknowledged(dl *delivery, now time.Time) bool {
	d.mu.Lock()
	subject, recent := dl.group.ackedSubject, now.Sub(dl.group.ackedAt) < ackMemory
	d.mu.Unlock()
	return subject != "" && recent && d.lookup.listenerKind(subject, now) == kindNone
}

// publishRefused returns evidence.forbidden and evidence.unattributed. It must read the connection's last error before
// the deliverer's fields: if NoteError is called in between, a refusal of this delivery still shows in one of the
// results.
func (d *Deliverer) publishRefused(dl *delivery) (forbidden, unattributed bool) {
	last := d.box.LastError()
	d.mu.Lock()
	defer d.mu.Unlock()
	return !dl.target.forbiddenAt.Before(dl.sent), last != d.lastError && errors.Is(last, nats.ErrPermissionViolation)
}
