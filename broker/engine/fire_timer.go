package engine

import (
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/role"
)

// This file carries out the steps of named timers on which package timer/role has decided, and handles their answers.

type (
	claimAnswered struct { // the event that the publish of a firing has ended
		*flight
		storeAnswer
	}
	examined struct { // the event that the read of a timer's state has ended
		*flight
		see timer.State
		err error
	}
	preceded struct { // the event that the reads of the entries of earlier rounds have ended
		*flight
		settled bool // the earlier rounds are settled
		alone   bool // no entry of an earlier round is left
		err     error
	}
	runRead struct { // the event that the reads of the sets of a run have ended
		*flight
		from uint64    // the generation of the first set
		at   time.Time // when the first set was stored
		err  error
	}
)

// timerStep converts the step of a timer to a step of its message.
func timerStep(m moment, f *flight, s role.Step) step {
	switch s.Kind {
	case role.Hold:
		return step{kind: hold, at: s.At}
	case role.BackOff:
		again := wait(m, f)
		if s.Reason != "" {
			again.note = &note{slog.LevelError,
				"the firing of a timer cannot be stored, will retry: check the limits of the stream, the account and the server",
				[]any{"reason", s.Reason}}
		}
		return again
	case role.Repeat:
		return repeatLater(m, f, s.Err)
	case role.Examine, role.Precede:
		return step{kind: examine}
	case role.Claim:
		return step{kind: claim}
	case role.Restart, role.Deliver:
		return step{kind: claimed}
	case role.Remove:
		return step{kind: remove}
	case role.Drop:
		return step{kind: arrive}
	case role.Dead:
		return step{kind: dead, why: s.Why}
	}
	panic("bug: unknown step of a timer")
}

// claim stores the firing of a timer, if the timer is still the last entry of its subject.
func (w *worker) claim(f *flight, m moment) {
	if w.stopped.Load() {
		return // the next owner fires it
	}
	if !w.take(f, m) {
		return
	}
	fires := w.timers.stream.Firing(f.timer, f.request, f.Data, m.now.Stamp())
	if fires == nil {
		if !w.timers.stream.HasOutcome(f.timer) {
			w.countMissed(f.timer) // if an outcome is stored later, the missed occurrences count only then
		}
		w.remove(f)
		return
	}
	w.publish(w.timers.stream.Name(), fires, func(a storeAnswer) { w.mail.Put(claimAnswered{f, a}) })
}

// take claims the firing of a timer within this process. If another message has claimed it, the timer is examined
// later.
func (w *worker) take(f *flight, m moment) (ours bool) {
	if t := w.timers; t.stream.Take(f.timer) {
		t.mine[f.timer] = struct{}{}
		return true
	}
	f.timer.Stage = role.Doubt
	w.flights.hold(f, m.now.Add(role.OtherFlight))
	return false
}

func (e claimAnswered) handle(w *worker, m moment) {
	w.flights.underway--
	f, answer := e.flight, role.Answer{Ack: e.ack, Err: e.err}
	if f.timer.Claimed(answer) {
		w.won(f, f.request)
	}
	if f.timer.Stage >= role.Fired {
		w.countMissed(f.timer)
	}
	s := w.timers.stream.AfterClaim(f.timer, len(f.Data), answer)
	w.apply(f, timerStep(m, f, s), m)
}

// countMissed counts the missed occurrences of a series, once the entry that skips them is stored.
func (w *worker) countMissed(a *role.Alarm) {
	w.engine.Tally.MissedRounds.Add(uint64(a.Left))
	a.Left = 0
}

// won continues with a timer whose firing is stored. R is the request that the firing contains. From then on, the timer
// is a message like any other.
func (w *worker) won(f *flight, r message.Request) {
	if f.timer.Swept() {
		w.engine.Tally.SweptTimers.Add(1)
	}
	r.Hop = max(r.Hop, f.request.Hop)
	f.request, f.tries = r, 0
}

// lookAt reads the state of a timer.
func (w *worker) lookAt(f *flight) {
	subject, generation, look := f.timer.Subject, f.timer.Generation, w.timers.stream.Look
	if f.timer.FirstRead() {
		look = w.timers.stream.LookAtRound
	}
	w.ask(func(ctx context.Context) event {
		see, err := look(ctx, subject, generation)
		return examined{f, see, err}
	})
}

// lookBefore reads whether the earlier rounds are settled or, for a debounced set, the start of its run.
func (w *worker) lookBefore(f *flight) {
	if subject, generation := f.timer.Subject, f.timer.Generation; f.timer.Debounced() {
		w.ask(func(ctx context.Context) event {
			from, at, err := w.timers.stream.RunOf(ctx, subject, generation)
			return runRead{f, from, at, err}
		})
		return
	}
	f.timer.Asked()
	subject, series, generation := f.timer.Subject, f.request.Origin().Series, f.timer.Generation
	w.ask(func(ctx context.Context) event {
		settled, alone, err := w.timers.stream.BeforeSettled(ctx, subject, series, generation)
		return preceded{f, settled, alone, err}
	})
}

func (e runRead) handle(w *worker, m moment) {
	w.flights.underway--
	f := e.flight
	w.timers.looking--
	w.startReads()
	if e.err != nil { // the set itself may have been removed
		f.timer.Stage = role.Doubt
		w.apply(f, repeatLater(m, f, e.err), m)
		return
	}
	f.request.Due = f.timer.RunRead(e.from, e.at)
	f.tries = 0
	w.proceed(f, m)
}

func (e preceded) handle(w *worker, m moment) {
	w.flights.underway--
	f := e.flight
	w.timers.looking--
	w.startReads()
	switch {
	case e.err != nil: // the round's own entry may have been removed
		f.timer.Stage = role.Doubt
		w.apply(f, repeatLater(m, f, e.err), m)
	case !e.settled && f.when().After(m.now):
		w.flights.hold(f, f.when()) // the read was ahead of the due time
	case !e.settled:
		w.apply(f, wait(m, f), m)
	default:
		f.timer.BeforeSettled(e.alone)
		f.tries = 0
		w.proceed(f, m)
	}
}

func (e examined) handle(w *worker, m moment) {
	w.flights.underway--
	f := e.flight
	w.timers.looking--
	w.startReads()
	if e.err != nil {
		w.notes.Log(slog.LevelWarn, "cannot read the last entry of a timer, will retry", "timer", f.timer.Subject,
			"err", e.err)
		w.apply(f, repeatLater(m, f, e.err), m)
		return
	}
	entry := e.see.Entry
	s := w.timers.stream.Examined(f.timer, e.see, m.now, time.Now())
	switch s.Kind {
	case role.Restart:
		w.restart(f, entry, e.see.In.Data)
		f.timer.Read(e.see)
	case role.Deliver:
		if !w.take(f, m) {
			return
		}
		f.problem, f.Data = entry.Problem, e.see.In.Data
		w.won(f, f.timer.Found(e.see))
	}
	w.apply(f, timerStep(m, f, s), m)
}
