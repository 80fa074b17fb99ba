package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"delaybroker/broker/message"
	"delaybroker/broker/reply"
	"delaybroker/levels"
)

// appendWait is how long one of our own streams may take to acknowledge. A publish that is late is repeated under the
// same id, so patience costs nothing but time.
const appendWait = 5 * time.Second

// verifiers is how many questions about duplicates a lane asks at once.
const verifiers = 16

// hop moves a message into a level.
func (w *worker) hop(h *held, level levels.Level) {
	h.moves = &w.counts.hops
	w.append(h, w.names.Hop(level.Name, h.request.Target), h.salted(h.request.HopHeader()), func(now time.Time, refusal reply.Ack) {
		if h.below = level.Name; refusal.Code == reply.CodeTooLarge {
			w.bury(h, tooLarge(len(h.Data)), h.request)
			return
		}
		if _, ok := w.cfg.Ladder.Below(level); ok {
			w.step(h, now) // roomy finds the next smaller level
			return
		}
		w.complain(now, slog.LevelWarn, "no level takes messages; trying again", "level", level.Name, "reason", refusal.Description)
		h.below = ""
		w.again(h, now)
	})
}

// roomy is the level to try, or a smaller one if that has just refused.
func (w *worker) roomy(h *held, level levels.Level) levels.Level {
	if refused, ok := w.cfg.Ladder.Lookup(h.below); ok && refused.Delay <= level.Delay {
		if smaller, ok := w.cfg.Ladder.Below(refused); ok {
			return smaller
		}
	}
	return level
}

// retry moves a message into a retry lane, as what its request is then. An attempt counts when it has been stored: what no
// lane takes stays as it was and is delivered from here, however long it takes.
func (w *worker) retry(h *held, wait levels.Level, then message.Request) {
	h.moves = &w.counts.retries
	w.append(h, w.names.Retry(wait.Name, h.request.Target), h.salted(then.HopHeader()), func(now time.Time, refusal reply.Ack) {
		w.complain(now, slog.LevelWarn, "a retry lane takes nothing; trying again from here", "lane", wait.Name, "reason", refusal.Description)
		w.again(h, now)
	})
}

// bury stores a message among the dead letters, as what its request is then. Of a last attempt that is not stored there
// goes what goes for the others: the target may take the message before there is room here.
func (w *worker) bury(h *held, p *message.Problem, then message.Request) {
	h.problem, h.moves = p, w.tally.dead[p.Code]
	w.append(h, w.names.Dead(p.Code, h.request.Target), h.salted(then.DeadHeader(p)), func(now time.Time, refusal reply.Ack) {
		w.complain(now, slog.LevelError, "dead letters are not stored; trying again", "code", p.Code, "reason", refusal.Description)
		if then.Attempts > h.request.Attempts {
			h.problem = nil
		}
		w.again(h, now)
	})
}

func tooLarge(size int) *message.Problem {
	return message.Problemf(message.TooLarge, "%d bytes and headers are more than the levels accept: publish less, or raise max_payload", size)
}

// salted makes the message id a fresh one after another message was found under it.
func (h *held) salted(header message.Header) message.Header {
	if h.salt != "" {
		header["Nats-Msg-Id"] = []string{header["Nats-Msg-Id"][0] + "+" + h.salt}
	}
	return header
}

// append stores a message in one of our streams. It has arrived when the stream says so; refused is called when the
// stream says no. What tells us nothing is repeated in place, under the same id, and counts as no attempt; should the
// message become due meanwhile, it is late by as long as the stream does not answer.
func (w *worker) append(h *held, subject string, header message.Header, refused func(time.Time, reply.Ack)) {
	again := func() { w.append(h, subject, header, refused) }
	w.underway++
	w.write.Publish(&nats.Msg{Subject: subject, Header: header, Data: h.Data}, appendWait, func(answer *nats.Msg, err error) bool {
		var ack reply.Ack
		if err == nil {
			var ok bool
			if ack, ok = reply.ParseAck(answer); !ok {
				return true // somebody else answers on our inbox
			}
		}
		w.mail.put(func(now time.Time) {
			w.underway--
			if errors.Is(err, reply.ErrTimeout) {
				w.complain(now, slog.LevelWarn, "a lane does not acknowledge; trying again: look at the stream's leader, the servers' disks, and the right to publish there", "subject", subject)
			}
			w.appended(h, ack, err, now, refused, again)
		})
		return false
	})
}

// appended acts on the answer of one of our streams.
func (w *worker) appended(h *held, ack reply.Ack, err error, now time.Time, refused func(time.Time, reply.Ack), again func()) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		refused(now, reply.Ack{Code: reply.CodeTooLarge, Description: err.Error()})
	case err != nil, ack.Code == reply.CodeInFlight, ack.Code == reply.CodeTooMany:
		h.doubt = again
		w.repeat(h, err, now)
	case ack.Refused():
		w.tally.unstored.Add(1)
		refused(now, ack)
	case ack.Duplicate:
		w.verify(h, ack)
	default:
		if h.problem != nil {
			w.complain(now, slog.LevelInfo, "dead letter", "code", h.problem.Code, "id", h.request.ID, "reason", h.problem.Sentence)
		}
		w.moved(h)
	}
}

// moved lets a message go that one of our streams has.
func (w *worker) moved(h *held) {
	if h.moves != nil {
		h.moves.Add(1)
	}
	w.arrived(h)
}

// verify looks at what is stored where a stream says that it has our message already. All ids of a stream share one
// space, clients' included, and whoever guesses an id could make us believe and purge. So only our own message under an
// internal subject counts; otherwise it is published again under a fresh id, at worst a duplicate.
func (w *worker) verify(h *held, ack reply.Ack) {
	if w.verifying == verifiers { // after a crash there may be tens of thousands
		w.doubtful = append(w.doubtful, func() { w.verify(h, ack) })
		return
	}
	w.verifying++
	w.underway++
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
		defer cancel()
		stored, err := w.leader.Message(ctx, ack.Stream, ack.Sequence)
		header, _ := stored.Header() // what cannot be read is not ours
		w.mail.put(func(now time.Time) {
			w.verifying--
			w.underway--
			if len(w.doubtful) > 0 {
				next := w.doubtful[0]
				w.doubtful = w.doubtful[1:]
				next()
			}
			switch ours := w.names.Internal(stored.Subject) && header.Get(message.HeaderID) == h.request.ID; {
			case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
				w.log.Debug("looking at a duplicate", "id", h.request.ID, "err", err)
				h.doubt = func() { w.verify(h, ack) }
				w.again(h, now)
			case ours:
				w.tally.ours.Add(1)
				w.moved(h)
			default:
				w.tally.foreign.Add(1)
				h.salt = nuid.Next()
				w.step(h, now)
			}
		})
	})
}
