package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// This file publishes messages into our streams, and checks the copies that a stream reports as duplicates.

// maxChecks is the maximum number of copies that a lane reads concurrently: after a crash, tens of thousands of
// publishes may be reported as duplicates.
const maxChecks = 16

// publishOf returns the message that a step stores in one of our streams.
func (w *worker) publishOf(f *flight, s step) *publish {
	p := &publish{kind: s.kind, level: s.level, as: &f.request, why: s.why}
	if s.as != nil {
		p.as = s.as
	}
	names, target := w.engine.names, f.request.Target
	switch s.kind {
	case hop:
		p.stream, p.subject = names.LevelStream(s.level.Name), names.Hop(s.level.Name, target)
		if f.timer != nil && f.timer.Marker() {
			p.subject, p.marker = names.Marker(s.level.Name), f.timer
		}
	case retry:
		p.stream, p.subject = names.RetryStream(s.level.Name), names.Retry(s.level.Name, target)
	case park:
		p.stream, p.subject = names.PausedStream(), names.Paused(s.pause, target)
	case dead:
		p.stream, p.subject = names.DeadStream(), names.Dead(s.why.Code, target)
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
	m := &nats.Msg{Subject: f.sent.subject, Header: f.sent.header(), Data: f.sent.body(f)}
	w.engine.Keys.Policy.Keys.SealMessage(m.Subject, m.Header, m.Data, time.Now())
	w.publish(f.sent.stream, m, func(a storeAnswer) { w.mail.Put(stored{f, a}) })
}

// publish publishes into one of our streams, and calls done with the answer, on any goroutine. It ignores answers of
// other streams.
func (w *worker) publish(stream string, m *nats.Msg, done func(storeAnswer)) {
	w.flights.underway++
	w.engine.Write.Publish(m, jsapi.Timeout, func(answer *nats.Msg, err error) (again bool) {
		r, ok := jsapi.ReplyOf(answer, err, stream)
		if !ok {
			return true
		}
		done(storeAnswer{ack: r.Ack, err: r.Err, local: err != nil && r.Err == nil})
		return false
	})
}

func (e stored) handle(w *worker, m moment) {
	w.flights.underway--
	f, a, sent := e.flight, e.storeAnswer, e.sent
	switch {
	case a.refusal():
		f.sent = nil
		if sent.kind == hop {
			f.refused = sent.level.Name
		}
		if sent.kind == dead && sent.as.Attempts == f.request.Attempts { // its next step is a dead letter again
			f.problem = sent.why
		}
		if !a.local {
			w.engine.Tally.Unstored.Add(1)
		}
	case a.err == nil && a.ack.Duplicate:
		sent.found = a.ack.Sequence
	}
	if sent.kind == park {
		w.parking.answered(a, time.Now())
	}
	s := afterStore(w.plan, m, f, sent, a)
	if s.kind == arrive {
		w.countMove(f, m)
	}
	if sent.kind == hop && a.refusal() { // afterStore has decided the next step
		w.setOverdue(f, s)
	}
	w.apply(f, s, m)
}

// countMove counts a message that one of our streams has stored: as a hop, a retry or a dead letter.
func (w *worker) countMove(f *flight, m moment) {
	switch f.sent.kind {
	case hop, park:
		w.counts.Hops.Add(1)
	case retry:
		w.counts.Retries.Add(1)
	case dead:
		w.engine.Tally.Dead[f.sent.why.Code].Add(1)
		w.recordDead(f, m.now)
	}
}

// checked is the event that the copy that a stream reports has been read.
type checked struct {
	*flight
	ours bool
	err  error
}

// check reads the copy that a stream reports. All publishers of a stream, clients included, share one namespace of ids.
// So a client that guesses an id could make the worker believe that its message is stored, and purge the message.
// Therefore a copy counts only if it is our own message: under an internal subject, with our seal, and with the same
// hop count.
func (w *worker) check(f *flight) {
	if w.flights.checking == maxChecks {
		w.flights.unchecked = append(w.flights.unchecked, f)
		return
	}
	w.flights.checking++
	sent := f.sent
	w.ask(func(ctx context.Context) event {
		found, err := w.engine.JetStream.API.Message(ctx, sent.stream, sent.found)
		ours := err == nil && w.engine.Keys.Wrote(sent.header(), found)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
		return checked{f, ours, err}
	})
}

func (e checked) handle(w *worker, m moment) {
	w.flights.underway--
	w.flights.checking--
	if waiting := w.flights.unchecked; len(waiting) > 0 {
		w.flights.unchecked = waiting[1:]
		w.check(waiting[0])
	}
	switch {
	case e.err != nil:
		w.log.Debug("cannot read a duplicate, will retry", "id", e.request.ID, "err", e.err)
	case e.ours:
		w.engine.Tally.OwnDuplicates.Add(1)
		w.countMove(e.flight, m)
	default:
		w.engine.Tally.ForeignDuplicates.Add(1)
	}
	w.apply(e.flight, afterCheck(m, e.flight, e.ours, e.err), m)
}

// ask runs a request to JetStream on a goroutine of its own, and puts the returned event into the mailbox.
func (w *worker) ask(question func(context.Context) event) {
	w.flights.underway++
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), jsapi.Timeout)
		defer cancel()
		w.mail.Put(question(ctx))
	})
}
