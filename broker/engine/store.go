package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/fault"
	"delaybroker/broker/jsapi"
)

// This file publishes messages into our streams, and checks the answer "duplicate". In this file, the copy is the
// message that the stream already has under the id of the publish.

// maxChecks is the maximum number of copies that a lane reads concurrently: after a crash, tens of thousands of
// publishes may be reported as duplicates.
const maxChecks = 16

// publishOf returns the message that a step stores in one of our streams.
func (w *worker) publishOf(f *flight, s step) *publish {
	p := &publish{kind: s.kind, level: s.level, request: &f.request, problem: s.problem}
	if s.request != nil {
		p.request = s.request
	}
	names, target := w.engine.names, f.request.Target
	switch s.kind {
	case hop:
		p.stream, p.subject = names.LevelStream(s.level.Name), names.Hop(s.level.Name, target)
		if f.timer != nil && f.timer.NeedsMarker() {
			p.subject, p.marker = names.Marker(s.level.Name), f.timer
		}
	case retry:
		p.stream, p.subject = names.RetryStream(s.level.Name), names.Retry(s.level.Name, target)
	case park:
		p.stream, p.subject = names.PausedStream(), names.PausedMessage(s.pause, target)
	case dead:
		p.stream, p.subject = names.DeadStream(), names.Dead(s.problem.Code, target)
	}
	return p
}

// stored is the event that one of our streams has answered a publish, or that the publish has failed.
type stored struct {
	*flight
	storeAnswer
}

// store seals the flight's message, and publishes it into one of our streams.
func (w *worker) store(f *flight) {
	w.publish(f.sent.stream, w.message(f, f.sent), func(a storeAnswer) {
		if a.Outcome() == jsapi.Stored {
			w.mail.putLater(stored{f, a})
		} else {
			w.mail.Put(stored{f, a})
		}
	})
}

// message returns the sealed message of a publish.
func (w *worker) message(f *flight, p *publish) *nats.Msg {
	m := &nats.Msg{Subject: p.subject, Header: p.header(), Data: p.body(f)}
	w.engine.Keys.Policy.Keys.SealMessage(m.Subject, m.Header, m.Data)
	return m
}

// publish publishes into one of our streams, and calls done with the answer, on any goroutine. It ignores answers that
// name another stream.
func (w *worker) publish(stream string, m *nats.Msg, done func(storeAnswer)) {
	w.flights.unanswered++
	w.engine.Write.Publish(m, jsapi.Timeout, func(answer *nats.Msg, err error) (ignored bool) {
		r, ok := jsapi.ReplyOf(answer, err, stream)
		if !ok {
			return true
		}
		w.obstacles.note(stream, m.Subject, fault.OfReply(stream, r))
		done(storeAnswer{r, err != nil && r.Err == nil})
		return false
	})
}

func (e stored) handle(w *worker, m moment) {
	w.flights.unanswered--
	f, a, sent := e.flight, e.storeAnswer, e.sent
	switch {
	case a.Outcome().NotStored():
		f.sent = nil
		if sent.kind == hop {
			f.refusedBy = sent.level.Name
		}
		// The next step is a dead letter again, unless even the letter is too large: then max_payload was lowered, and when
		// it is raised, the message is delivered.
		if sent.kind == dead && sent.request.Attempts == f.request.Attempts && a.Ack.Code != jsapi.CodeTooLarge {
			f.problem = sent.problem
		}
		if !a.local {
			w.engine.Tally.Unstored.Add(1)
		}
	case a.Outcome() == jsapi.Duplicate:
		sent.duplicate = a.Ack.Sequence
	}
	if sent.kind == park {
		w.parking.recordAnswer(a, time.Now())
	}
	s := afterStore(w.plan, m, f, sent, a)
	if s.kind == arrive {
		w.countMove(f, m)
	}
	// After a refused hop, the message stays in this lane, and may be overdue from another time on.
	if sent.kind == hop && a.Outcome().NotStored() {
		w.setOverdue(f, s)
	}
	w.apply(f, s, m)
}

// countMove counts a message that one of our streams has stored. It also records a dead letter in the journal.
func (w *worker) countMove(f *flight, m moment) {
	switch f.sent.kind {
	case hop, park:
		w.counts.Hops.Add(1)
	case retry:
		w.counts.Retries.Add(1)
	case dead:
		w.engine.Tally.DeadLetters[f.sent.problem.Code].Add(1)
		w.recordDead(f, m.now)
	}
}

// checked is the event that the read of a copy has ended.
type checked struct {
	*flight
	stream string
	ours   bool // a broker wrote the copy for the same hop, or the message itself still exists
	err    error
}

// check reads the copy of a publish. All publishers of a stream, clients included, share one namespace of ids. So if a
// client guesses the id of a publish and uses the id first, the stream reports the worker's publish as a duplicate,
// although the stream does not have the message. Therefore a copy counts only if a broker wrote it for the same hop:
// under an internal subject, with our seal, and with the same Delay-Id and hop count. Without a publish, check looks
// for the message itself: see hand_over.go.
func (w *worker) check(f *flight) {
	if w.flights.checks == maxChecks {
		w.flights.unchecked = append(w.flights.unchecked, f)
		return
	}
	w.flights.checks++
	sent, stream, sequence := f.sent, w.lane.Stream, f.Sequence
	if sent != nil {
		stream, sequence = sent.stream, sent.duplicate
	}
	w.ask(func(ctx context.Context) event {
		found, err := w.engine.JetStream.API.Message(ctx, stream, sequence)
		ours := err == nil && (sent == nil || w.engine.Keys.Recognizes(sent.header(), found))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
		return checked{f, stream, ours, err}
	})
}

func (e checked) handle(w *worker, m moment) {
	w.obstacles.note("check", e.stream, e.err)
	w.flights.unanswered--
	w.flights.checks--
	if queue := w.flights.unchecked; len(queue) > 0 {
		w.flights.unchecked = queue[1:]
		w.check(queue[0])
	}
	switch {
	case e.sent == nil:
		w.apply(e.flight, afterVerification(w.plan, m, e.flight, e.ours, e.err), m)
		return
	case e.err != nil:
		w.log.Debug("cannot read the original of a duplicate, will retry", "id", e.request.ID, "err", e.err)
	case e.ours:
		w.engine.Tally.OwnDuplicates.Add(1)
		w.countMove(e.flight, m)
	default:
		w.engine.Tally.ForeignDuplicates.Add(1)
	}
	w.apply(e.flight, afterCheck(m, e.flight, e.ours, e.err), m)
}

// ask sends a request about a message, with the timeout jsapi.Timeout. The event's handle must decrement
// flights.unanswered.
func (w *worker) ask(send func(context.Context) event) {
	w.flights.unanswered++
	w.request(jsapi.Timeout, send)
}

// request calls send, which sends a request to JetStream, on another goroutine. It puts the returned event into the
// mailbox.
func (w *worker) request(timeout time.Duration, send func(context.Context) event) {
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		w.mail.Put(send(ctx))
	})
}
