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
		state timer.State
		err   error
	}
	earlierRoundsRead struct { // the event that the earlier rounds of a timer were read, or could not be read
		*flight
		settled        bool // the earlier rounds are settled
		earlierRemoved bool // no entry of an earlier round is left
		err            error
	}
	runRead struct { // the event that the first set of a run was read, or could not be read
		*flight
		first   uint64    // the generation of the first set
		firstAt time.Time // when the first set was stored
		err     error
	}
)

// timerStep converts the step of a timer to a step of its message.
func timerStep(m moment, f *flight, s role.Step) step {
	switch s.Kind {
	case role.Hold:
		return step{kind: hold, at: s.At}
	case role.BackOff:
		backOff := backOffStep(m, f)
		if s.Reason != "" {
			backOff.line = &logLine{slog.LevelError,
				"the firing of a timer cannot be stored, will retry: check the limits of the stream, the account and the server",
				[]any{"reason", s.Reason}}
		}
		return backOff
	case role.Repeat:
		return repeatLater(m, f, s.Err)
	case role.Examine, role.ReadEarlierEntries:
		return step{kind: examine}
	case role.Claim:
		return step{kind: claim}
	case role.Restart, role.Deliver:
		return step{kind: decideAgain}
	case role.Remove:
		return step{kind: remove}
	case role.Drop:
		return step{kind: arrive}
	case role.Dead:
		return step{kind: dead, problem: s.Problem}
	}
	panic("bug: unknown step of a timer")
}

// claim publishes the firing of a timer. The stream stores it only if the timer's generation is still the last entry of
// the subject. If the final round of a series was missed, there is no firing, and claim removes the timer.
func (w *worker) claim(f *flight, m moment) {
	if w.stopped.Load() {
		return // the next owner stores the firing
	}
	if !w.claimInProcess(f, m) {
		return
	}
	firing := w.timers.stream.Firing(f.timer, f.request, f.Data, m.now.Stamp())
	if firing == nil {
		if !w.timers.stream.HasOutcome(f.timer) {
			w.countMissed(f.timer) // with an outcome, the rounds are counted when it is stored
		}
		w.remove(f)
		return
	}
	w.publish(w.timers.stream.Name(), firing, func(a storeAnswer) { w.mail.Put(claimAnswered{f, a}) })
}

// claimInProcess claims the firing of a timer for this message, among the messages of this process. If another message
// has claimed the firing, claimInProcess returns false, and the timer is examined later.
func (w *worker) claimInProcess(f *flight, m moment) (ours bool) {
	if t := w.timers; t.stream.Take(f.timer) {
		t.claims[f.timer] = struct{}{}
		return true
	}
	f.timer.Stage = role.Doubt
	w.flights.hold(f, m.now.Add(role.ClaimRetry))
	return false
}

func (e claimAnswered) handle(w *worker, m moment) {
	w.flights.unanswered--
	f, answer := e.flight, role.Answer{Ack: e.ack, Err: e.err}
	if f.timer.Claimed(answer) {
		w.becomeMessage(f, f.request)
	}
	if f.timer.Stage >= role.Fired {
		w.countMissed(f.timer)
	}
	s := w.timers.stream.AfterClaim(f.timer, len(f.Data), answer)
	w.apply(f, timerStep(m, f, s), m)
}

// countMissed counts the missed rounds of a series. If an entry is to record that they are skipped, the caller waits
// until the entry is stored, so that no instance counts them twice.
func (w *worker) countMissed(a *role.Alarm) {
	w.engine.Tally.MissedRounds.Add(uint64(a.Skipped))
	a.Skipped = 0
}

// becomeMessage turns a timer whose firing is stored into a message like any other. R is the request that the firing
// contains.
func (w *worker) becomeMessage(f *flight, r message.Request) {
	if f.timer.Swept() {
		w.engine.Tally.SweptTimers.Add(1)
	}
	r.Hop = max(r.Hop, f.request.Hop)
	f.request, f.tries = r, 0
}

// readState reads the state of a timer from the leader.
func (w *worker) readState(f *flight) {
	subject, generation, readState := f.timer.Subject, f.timer.Generation, w.timers.stream.ReadState
	if f.timer.FirstRead() {
		readState = w.timers.stream.ReadRoundState
	}
	w.ask(func(ctx context.Context) event {
		state, err := readState(ctx, subject, generation)
		return examined{f, state, err}
	})
}

// readEarlierEntries reads from the leader whether the earlier rounds of a timer are settled. For a debounced set, it
// reads the first set of its run.
func (w *worker) readEarlierEntries(f *flight) {
	if subject, generation := f.timer.Subject, f.timer.Generation; f.timer.Debounced() {
		w.ask(func(ctx context.Context) event {
			first, at, err := w.timers.stream.ReadRun(ctx, subject, generation)
			return runRead{f, first, at, err}
		})
		return
	}
	f.timer.EarlierRoundsRead = true
	subject, series, generation := f.timer.Subject, f.request.Origin().Series, f.timer.Generation
	w.ask(func(ctx context.Context) event {
		settled, earlierRemoved, err := w.timers.stream.ReadEarlierRounds(ctx, subject, series, generation)
		return earlierRoundsRead{f, settled, earlierRemoved, err}
	})
}

// retryRead decides after a failed read of a timer's earlier entries. The timer's own entry may have been removed, so
// the timer is in doubt.
func (w *worker) retryRead(f *flight, m moment, err error) {
	f.timer.Stage = role.Doubt
	w.apply(f, repeatLater(m, f, err), m)
}

func (e runRead) handle(w *worker, m moment) {
	w.endRead()
	f := e.flight
	if e.err != nil {
		w.retryRead(f, m, e.err)
		return
	}
	f.request.Due = f.timer.RunRead(e.first, e.firstAt)
	f.tries = 0
	w.proceed(f, m)
}

func (e earlierRoundsRead) handle(w *worker, m moment) {
	w.endRead()
	f := e.flight
	switch {
	case e.err != nil:
		w.retryRead(f, m, e.err)
	case !e.settled && f.nextAttempt().After(m.now):
		w.flights.packOrHold(f, f.nextAttempt(), m.now) // the entries are read again when the timer is due
	case !e.settled:
		w.apply(f, backOffStep(m, f), m)
	default:
		f.timer.SettleEarlierRounds(e.earlierRemoved)
		f.tries = 0
		w.proceed(f, m)
	}
}

func (e examined) handle(w *worker, m moment) {
	w.endRead()
	f := e.flight
	if e.err != nil {
		w.limitedLog.Log(slog.LevelWarn, "cannot read the last entry of a timer, will retry", "timer", f.timer.Subject,
			"err", e.err)
		w.apply(f, repeatLater(m, f, e.err), m)
		return
	}
	entry := e.state.Entry
	s := w.timers.stream.Examined(f.timer, e.state, m.now, time.Now())
	switch s.Kind {
	case role.Restart:
		w.restart(f, entry, e.state.Message.Data)
		f.timer.TakeState(e.state)
	case role.Deliver:
		if !w.claimInProcess(f, m) {
			return
		}
		f.problem, f.Data = entry.Problem, e.state.Message.Data
		w.becomeMessage(f, f.timer.ContinueFiring(e.state))
		w.countHeaders(f)
	}
	w.apply(f, timerStep(m, f, s), m)
}
