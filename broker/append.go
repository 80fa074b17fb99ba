package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/outbox"
)

// appendWait is how long one of our own streams may take to acknowledge. A publish that is late is repeated under the
// same id, so patience costs nothing but time.
const appendWait = 5 * time.Second

// verifiers is how many questions about duplicates a lane asks at once.
const verifiers = 16

// entry is a message on its way into one of our streams. It is the same however often it is published.
type entry struct {
	*held
	stream  string // that it goes to, and whose answer counts
	subject string
	header  message.Header
	refused func(now time.Time, refusal jsapi.Ack)
}

// append seals a message and stores it in one of our streams. It has arrived when the stream says so; refused is called when the
// stream says no. What tells us nothing is repeated in place, under the same id, and counts as no attempt; should the
// message become due meanwhile, it is late by as long as the stream does not answer.
func (w *worker) append(h *held, stream, subject string, header message.Header, refused func(time.Time, jsapi.Ack)) {
	w.policy.Keys.SealMessage(subject, header, h.Data, time.Now())
	w.enter(entry{h, stream, subject, header, refused})
}

func (w *worker) enter(e entry) {
	w.underway++
	w.write.Publish(&nats.Msg{Subject: e.subject, Header: e.header, Data: e.Data}, appendWait, func(answer *nats.Msg, err error) bool {
		var ack jsapi.Ack
		if err == nil {
			var ok bool
			if ack, ok = jsapi.ParseAck(answer); !ok || ack.Stream != e.stream && (ack.Stream != "" || !ack.Refused()) {
				return true // somebody else answers on our inbox
			}
		}
		w.mail.put(func(now time.Time) {
			w.underway--
			w.entered(e, ack, err, now)
		})
		return false
	})
}

// entered acts on the answer of one of our streams.
func (w *worker) entered(e entry, ack jsapi.Ack, err error, now time.Time) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		e.refused(now, jsapi.Ack{Code: jsapi.CodeTooLarge, Description: err.Error()})
	case err != nil, ack.Code == jsapi.CodeInFlight, ack.Code == jsapi.CodeTooMany:
		if errors.Is(err, outbox.ErrTimeout) {
			w.complain(now, slog.LevelWarn, "a lane does not acknowledge; trying again: look at the stream's leader, the servers' disks, and the right to publish there", "subject", e.subject)
		}
		e.doubt = func() { w.enter(e) }
		w.repeat(e.held, err, now)
	case ack.Refused():
		w.tally.unstored.Add(1)
		e.refused(now, ack)
	case ack.Duplicate:
		w.verify(e, ack)
	default:
		if e.problem != nil {
			w.complain(now, slog.LevelInfo, "dead letter", "code", e.problem.Code, "id", e.request.ID, "reason", e.problem.Sentence)
		}
		w.moved(e.held)
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
// space, clients' included, and whoever guesses an id could make us believe and purge. So only our own message counts,
// under an internal subject, with our seal, and at this hop of its way; otherwise it is published again under a fresh id,
// at worst a duplicate.
func (w *worker) verify(e entry, ack jsapi.Ack) {
	if w.verifying == verifiers { // after a crash there may be tens of thousands
		w.doubtful = append(w.doubtful, func() { w.verify(e, ack) })
		return
	}
	w.verifying++
	w.underway++
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
		defer cancel()
		stored, err := w.api.Message(ctx, e.stream, ack.Sequence)
		ours := err == nil && w.wrote(e, stored)
		w.mail.put(func(now time.Time) {
			w.verifying--
			w.underway--
			if len(w.doubtful) > 0 {
				next := w.doubtful[0]
				w.doubtful = w.doubtful[1:]
				next()
			}
			switch {
			case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
				w.log.Debug("looking at a duplicate", "id", e.request.ID, "err", err)
				e.doubt = func() { w.verify(e, ack) }
				w.again(e.held, now)
			case ours:
				w.tally.ours.Add(1)
				w.moved(e.held)
			default:
				w.tally.foreign.Add(1)
				w.enter(e.fresh())
			}
		})
	})
}

// wrote reports whether what is stored is a copy of the entry.
func (w *worker) wrote(e entry, stored jsapi.Message) bool {
	header, err := stored.Header()
	if err != nil || !w.names.Internal(stored.Subject) {
		return false
	}
	for _, name := range []string{message.HeaderID, message.HeaderHop} {
		if !slices.Equal(header[name], e.header[name]) {
			return false
		}
	}
	return w.policy.Keys.Proven(message.Incoming{Subject: stored.Subject, Header: message.Header(header), Data: stored.Data, At: stored.Time}) == nil
}

// fresh is the entry under an id that nobody can have used.
func (e entry) fresh() entry {
	e.header = maps.Clone(e.header)
	e.header["Nats-Msg-Id"] = []string{e.header["Nats-Msg-Id"][0] + "+" + rand.Text()}
	return e
}
