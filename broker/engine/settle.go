package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
)

// This file carries out the steps that decide.go has decided on, and handles their answers.

const (
	// checkers is the maximum number of copies that a lane reads concurrently: after a crash there may be tens of
	// thousands to read.
	checkers = 16
)

// Deliverer delivers to targets. Deliver calls done exactly once, from any goroutine; Recall gives back the messages of
// an owner that were not sent.
type Deliverer interface {
	Deliver(m deliver.Message, done func(deliver.Result))
	Recall(deliver.Owner)
}

// proceed decides the next step of a message, and carries it out.
func (w *worker) proceed(f *flight, m moment) {
	s := next(w.plan, m, f)
	if f.newer() {
		w.flights.newer[f] = struct{}{}
		w.lease.Decline()
	}
	w.date(f, s)
	w.apply(f, s, m)
}

// date notes since when a message should have left, once its next step is decided. Steps that only repeat something
// change nothing.
func (w *worker) date(f *flight, s step) {
	switch s.kind {
	case hold, hop, fire, park, dead:
		since, overdue := overdueSince(w.plan, f, s)
		w.flights.date(f, since, overdue)
	}
}

// apply carries out a step.
func (w *worker) apply(f *flight, s step, m moment) {
	switch n := s.note; {
	case n == nil:
	case s.about != "":
		w.engine.refusals.Log(s.about, n.level, n.text, n.args...)
	default:
		w.notes.Log(n.level, n.text, n.args...)
	}
	switch s.kind {
	case hold:
		f.leaves = s.leaves
		w.flights.rest(f, s.at, m.now)
	case backOff:
		w.counts.Repeats.Add(1)
		f.tries++
		w.flights.hold(f, s.at)
	case pace:
		f.request = *s.as
		w.proceed(f, m)
	case awaitKey:
		w.awaitKey(f, m)
	case halt:
		w.flights.halted = append(w.flights.halted, f)
	case examine:
		w.examine(f, m)
	case claim:
		w.claim(f, m)
	case claimed:
		w.proceed(f, m)
	case remove:
		w.remove(f)
	case hop, retry, park, dead:
		f.sent = w.publishOf(f, s)
		if s.kind == park {
			w.parking.begin(time.Now())
		}
		w.store(f)
	case repeat:
		w.store(f)
	case renew:
		f.sent.renew()
		w.store(f)
	case check:
		w.check(f)
	case fire:
		w.fire(f, m)
	case arrive:
		if f.timer != nil && f.timer.Arrived(destination(f.sent)) {
			w.remove(f)
			return
		}
		w.end(f)
	default:
		panic(fmt.Sprintf("bug: unknown step %d", s.kind))
	}
}

// destination returns where the message of a timer has arrived, by its last publish into one of our streams.
func destination(sent *publish) role.Destination {
	switch {
	case sent == nil:
		return role.Target
	case sent.kind == hop:
		return role.Level
	case sent.kind == dead:
		return role.DeadLetters
	}
	return role.RetryLane
}

// end removes a message from memory.
func (w *worker) end(f *flight) {
	if f.timer != nil {
		w.forgetTimer(f)
		w.endAlarm(f.timer)
	}
	w.flights.end(f)
	// A duplicate of a message that waits for a turn would take another turn.
	if f.sent != nil && f.sent.kind == hop && (f.request.Paced != "" || w.plan.isHome(f.sent.level, f.request)) {
		w.reading.cursor.DoneUrgent(f.mark)
	} else {
		w.reading.cursor.Done(f.mark)
	}
	w.charge()
}

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

// stored is the event that a publish into one of our streams has been answered, or has failed.
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

// publish publishes into one of our streams, and calls done with the answer, on any goroutine. It ignores the answer of
// another stream.
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
		if sent.kind == dead && sent.as.Attempts == f.request.Attempts { // it stays a dead letter
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
		w.date(f, s)
	}
	w.apply(f, s, m)
}

// countMove counts a message that one of our streams has stored.
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

// checked is the event that the copy reported by a stream has been read.
type checked struct {
	*flight
	ours bool
	err  error
}

// check reads the copy that a stream reports. The ids of all publishers of a stream, clients included, share one
// namespace: a client that guesses an id could make us believe that our message is stored, and purge it. So a copy
// counts only if it is our own message: under an internal subject, with our seal, and at this hop of its way.
func (w *worker) check(f *flight) {
	if w.flights.checking == checkers {
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

// ask sends a request to JetStream. The answer is an event.
func (w *worker) ask(question func(context.Context) event) {
	w.flights.underway++
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), jsapi.Timeout)
		defer cancel()
		w.mail.Put(question(ctx))
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
		w.log.Debug("looking at a duplicate", "id", e.request.ID, "err", e.err)
	case e.ours:
		w.engine.Tally.Ours.Add(1)
		w.countMove(e.flight, m)
	default:
		w.engine.Tally.Foreign.Add(1)
	}
	w.apply(e.flight, afterCheck(m, e.flight, e.ours, e.err), m)
}

// delivered is the end of a delivery.
type delivered struct {
	*flight
	result deliver.Result
	at     leader.Time // when the target had it; zero if it was not delivered
}

// fire delivers a message to its target.
func (w *worker) fire(f *flight, m moment) {
	if w.stopped.Load() {
		return // the successor fires it
	}
	w.flights.underway++
	w.early.Sent(w.clock.Base(), f.request.Due, m.local)
	d := deliver.Message{
		Target: f.request.Target, Mode: f.request.Mode, Data: f.Data, Size: f.size,
		Header:  func() message.Header { return f.request.TargetHeader() }, // does not change until there is a result
		RateKey: f.request.RateKey, Paced: f.request.Paced, Repeated: f.tries > 0, Owner: w,
	}
	if expires := f.request.Expires; !expires.IsZero() {
		d.Expires = m.local.Add(leader.At(expires).Sub(m.now))
	}
	// The clock's present proof dates the delivery: a later one may be weaker, and date it before it was due.
	now, proved := m.now, m.local
	w.engine.Deliver.Deliver(d, func(r deliver.Result) {
		w.mail.Put(delivered{f, r, now.Add(r.At.Sub(proved))})
	})
}

// MayDeliver reports whether a message that waits for its turn may be sent: the lane is ours, and is not stopping. It
// may be called from any goroutine.
func (w *worker) MayDeliver() bool { return !w.stopped.Load() && w.lease.Held() }

func (e delivered) handle(w *worker, m moment) {
	w.flights.underway--
	f, r := e.flight, e.result
	if silence(r) {
		f.silent++
	}
	count := r.Count
	r = judgeSilence(f, r)
	if r.Outcome == deliver.Refused {
		f.silent = 0
	}
	if !errors.Is(r.Err, deliver.ErrDraining) && !errors.Is(r.Err, deliver.ErrHalted) {
		w.engine.Tally.Outcomes[r.Outcome].Add(1)
		count.Note(r.Outcome)
	}
	if r.Outcome == deliver.Delivered {
		w.counts.Delivered.Add(1)
		late := w.lateness(f, e.at)
		w.engine.Tally.Lateness[w.lane.Kind].Observe(late)
		w.recordDelivered(f, e.at, late)
	}
	w.apply(f, afterDelivery(w.plan, m, f, r, r.Turn.Sub(m.local)), m)
}

// lateness returns the time from the due time until the target had the message, by the leader's clock: see
// deliver.Result. So it includes the way of the answer back, but not the lag of the clock. A message that waited
// because of its target's rate is late from its turn on, and one that waited because its target was paused is late from
// the resumption on: such waits should not alert an operator.
func (w *worker) lateness(f *flight, at leader.Time) time.Duration {
	since := leader.At(f.request.Due)
	if f.request.Paced != "" {
		since = f.when()
	}
	if w.plan.resumed.After(since) {
		since = w.plan.resumed
	}
	return max(0, at.Sub(since))
}

// awaitKey handles a message that has a seal of an unknown key: an instance that provisioned at the same time as we did
// may have made the key. The message waits until the secrets have been read after it came. If the key is still unknown
// then, the seal counts as forged.
func (w *worker) awaitKey(f *flight, m moment) {
	local := time.Now()
	if w.flights.await(f, local) && !w.engine.Keys.ReadSince(f.unproven.since, local) {
		w.flights.hold(f, m.now.Add(keysRetry))
		return
	}
	in := f.unproven.incoming
	in.KeysRead = true
	w.flights.proven(f)
	if w.parse(f, in) {
		w.proceed(f, m)
	}
}
