package engine

import (
	"log/slog"

	"delaybroker/broker/timer/role"
)

// This file carries out the steps of named timers on which package timer/role has decided.

// timerAnswered is the event that a request about a timer has ended: the publish of its firing, or a read.
type timerAnswered struct {
	*flight
	event role.Event
	read  bool
}

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
	case role.Copy:
		return step{kind: readCopy}
	case role.Read:
		return step{kind: examine}
	case role.Claim:
		return step{kind: claim}
	case role.Restart, role.Continue, role.Deliver:
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
// the subject.
func (w *worker) claim(f *flight, m moment) {
	if w.stopped.Load() {
		return // the next instance stores the firing
	}
	firing, s := f.timer.Claim(f.request, f.Data, m.now)
	if firing == nil {
		w.applyToTimer(f, s, m)
		return
	}
	w.publish(w.timers.lane.Name(), firing, func(a storeAnswer) {
		w.mail.Put(timerAnswered{flight: f, event: role.Published(a.Reply)})
	})
}

func (e timerAnswered) handle(w *worker, m moment) {
	f := e.flight
	w.flights.unanswered--
	s := f.timer.Handle(e.event, situationOf(w.plan, m, f))
	if e.read {
		w.timers.reads.end(f)
		w.obstacles.note("read", w.timers.lane.Name(), s.Err)
		if s.Err != nil {
			w.limitedLog.Log(slog.LevelWarn, "cannot read the entries of a timer, will retry", "timer", f.timer.Subject,
				"err", s.Err)
		}
	}
	w.applyToTimer(f, s, m)
	// The latest set of a run waits for the read of the run's start, unless it has left the wheel for another reason.
	if latest := w.timers.lastSets[f.timer.Subject]; e.read && latest != nil && latest != f && latest.timer.Debounced() &&
		w.flights.removeFromWheel(latest) {
		latest.request.Due = latest.timer.FiresAt()
		w.proceed(latest, m)
	}
}

// applyToTimer carries out a step that follows an event of a timer.
func (w *worker) applyToTimer(f *flight, s role.Step, m moment) {
	w.engine.Tally.MissedRounds.Add(uint64(s.Missed))
	if c := s.Content; c != nil {
		hop := max(c.Request.Hop, f.request.Hop)
		f.request, f.problem, f.Data = c.Request, c.Problem, c.Body
		f.request.Hop = hop
		w.countHeaders(f)
	}
	switch s.Kind {
	case role.Continue:
		if f.tries = 0; !s.At.IsZero() {
			f.request.Due = s.At.Stamp()
		}
	case role.Deliver: // from now on, the timer is a message like any other
		if f.tries = 0; f.timer.Swept() {
			w.engine.Tally.SweptTimers.Add(1)
		}
	}
	w.apply(f, timerStep(m, f, s), m)
}
