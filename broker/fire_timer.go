package broker

import (
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/alarm"
	"delaybroker/broker/message"
)

// This file takes the steps of named timers that package alarm has decided on, and takes in the answers to them.

const (
	// lookers is how many last entries a lane reads at once: JetStream drops all questions of all clients when 10,000 of
	// them wait.
	lookers = 16
	// loadShare is the part of its memory, one in so many, that a lane takes for bodies that are read when they are due:
	// thousands of markers may be due at once.
	loadShare = 4
	// settleEvery is how soon a stop tries again to remove the entries of what has arrived.
	settleEvery = 100 * time.Millisecond
)

// timerEvent is the answer to a step of a timer.
type timerEvent interface{ takeIn(w *worker, m moment) }

type (
	claimAnswered struct { // a firing has been stored, or has failed
		*flight
		storeAnswer
	}
	examined struct { // the last entry of a subject has been read
		*flight
		see alarm.Sight
		err error
	}
	preceded struct { // it is known whether the rounds before are settled
		*flight
		settled bool
		alone   bool // and nothing is left of what came before
		err     error
	}
	told struct { // the entry is stored which tells what became of a timer, or could not be
		*flight
		storeAnswer
	}
	removed struct { // entries have been removed, or could not be
		*flight
		err error
	}
)

// timerStep is the step of a timer as a worker takes it. It is hold, back off and so on as for any message.
func timerStep(m moment, f *flight, s alarm.Step) step {
	switch s.Kind {
	case alarm.Hold:
		return step{kind: hold, at: s.At}
	case alarm.BackOff:
		again := wait(m, f)
		if s.Reason != "" {
			again.note = &note{slog.LevelError,
				"timers cannot be fired; trying again until they can: look at the stream's limits, " +
					"and those of the account and server", []any{"reason", s.Reason}}
		}
		return again
	case alarm.Repeat:
		return repeatLater(m, f, s.Err)
	case alarm.Examine, alarm.Precede:
		return step{kind: examine}
	case alarm.Claim:
		return step{kind: claim}
	case alarm.Anew, alarm.Deliver:
		return step{kind: claimed}
	case alarm.Remove:
		return step{kind: remove}
	case alarm.LetGo:
		return step{kind: arrive}
	case alarm.Dead:
		return step{kind: dead, why: s.Why}
	}
	panic("bug: unknown step of a timer")
}

// claim stores that a timer fires, if it is still the last entry of its subject.
func (w *worker) claim(f *flight, m moment) {
	if w.stopped.Load() {
		return // the successor fires it
	}
	if !w.take(f, m) {
		return
	}
	fires := w.timers.stream.Firing(f.timer, f.request, f.Data, m.now.Stamp())
	if fires == nil {
		if !w.timers.stream.Tells(f.timer) {
			w.leftOut(f) // otherwise once that is stored
		}
		w.remove(f)
		return
	}
	w.publish(w.timers.stream.Name(), fires, func(a storeAnswer) { w.mail.Put(claimAnswered{f, a}) })
}

// take claims the firing of a timer within this process. A timer that another message is about to fire is looked at
// again later.
func (w *worker) take(f *flight, m moment) (ours bool) {
	if t := w.timers; t.stream.Take(f.timer, f) {
		t.mine[f] = f.timer.Generation
		return true
	}
	f.timer.Stage = alarm.Doubt
	w.flights.hold(f, m.now.Add(alarm.OtherFlight))
	return false
}

func (e claimAnswered) takeIn(w *worker, m moment) {
	f, answer := e.flight, alarm.Answer{Ack: e.ack, Err: e.err}
	if f.timer.Claimed(answer) {
		w.won(f, f.request)
	}
	if f.timer.Stage >= alarm.Fired {
		w.leftOut(f)
	}
	s := w.timers.stream.AfterClaim(f.timer, len(f.Data), answer)
	w.apply(f, timerStep(m, f, s), m)
}

// leftOut counts the occurrences of a series that were missed, once that is stored.
func (w *worker) leftOut(f *flight) {
	w.shared.tally.Missed.Add(uint64(f.timer.Left))
	f.timer.Left = 0
}

// won goes on with a timer whose firing is stored. From then on it is a message as any other.
func (w *worker) won(f *flight, r message.Request) {
	if f.timer.Swept() {
		w.shared.tally.Swept.Add(1)
	}
	r.Timer, r.Recurs = message.Timer{}, nil
	r.Hop = max(r.Hop, f.request.Hop)
	f.request, f.tries = r, 0
}

// examine reads what is true of a timer, when there is room for its body, or of the rounds before.
func (w *worker) examine(f *flight) {
	w.timers.unlooked = append(w.timers.unlooked, f)
	w.lookOn()
}

// lookOn reads what there is room for, in order.
func (w *worker) lookOn() {
	t := w.timers
	for len(t.unlooked) > 0 && t.looking < lookers && !w.stopped.Load() {
		f := t.unlooked[0]
		before := f.timer.Stage == alarm.Pending // its own body is in memory, and nobody has fired it
		if !before && !f.timer.Loaded {
			size := f.timer.Size
			if t.loaded > 0 && int64(t.loaded+size) > w.flights.account.Most()/loadShare {
				return
			}
			f.timer.Loaded = true
			t.loaded += size
			w.flights.grow(f, size+size/4)
			w.charge()
		}
		t.unlooked = t.unlooked[1:]
		t.looking++
		if before {
			w.lookBefore(f)
		} else {
			w.lookAt(f)
		}
	}
}

// lookAt reads what is true of a timer.
func (w *worker) lookAt(f *flight) {
	subject, generation, look := f.timer.Subject, f.timer.Generation, w.timers.stream.Look
	if f.timer.FirstLook() {
		look = w.timers.stream.LookAtRound
	}
	w.ask(func(ctx context.Context) event {
		see, err := look(ctx, subject, generation)
		return examined{f, see, err}
	})
}

// lookBefore asks whether the rounds before are settled.
func (w *worker) lookBefore(f *flight) {
	subject, series, generation := f.timer.Subject, f.request.Series, f.timer.Generation
	w.ask(func(ctx context.Context) event {
		settled, alone, err := w.timers.stream.BeforeSettled(ctx, subject, series, generation)
		return preceded{f, settled, alone, err}
	})
}

func (e preceded) takeIn(w *worker, m moment) {
	f := e.flight
	w.timers.looking--
	w.lookOn()
	switch {
	case e.err != nil: // it may be gone itself
		f.timer.Stage = alarm.Doubt
		w.apply(f, repeatLater(m, f, e.err), m)
	case !e.settled:
		w.apply(f, wait(m, f), m)
	default:
		f.timer.BeforeSettled(e.alone)
		f.tries = 0
		w.proceed(f, m)
	}
}

func (e examined) takeIn(w *worker, m moment) {
	f := e.flight
	w.timers.looking--
	w.lookOn()
	if e.err != nil {
		w.notes.Log(slog.LevelWarn, "the last entry of a timer cannot be read; trying again", "timer", f.timer.Subject,
			"err", e.err)
		w.apply(f, repeatLater(m, f, e.err), m)
		return
	}
	entry := e.see.Found.Entry
	s := w.timers.stream.Examined(f.timer, e.see, m.now, time.Now())
	switch s.Kind {
	case alarm.Anew: // by what the set says itself
		hop := f.request.Hop
		f.request, f.problem, f.Data = entry.Request, entry.Problem, e.see.In.Data
		f.request.Hop = hop
		f.timer.Read(e.see)
	case alarm.Deliver:
		if !w.take(f, m) {
			return
		}
		f.problem, f.Data = entry.Problem, e.see.In.Data
		w.won(f, f.timer.Found(e.see))
	}
	w.apply(f, timerStep(m, f, s), m)
}

// remove removes the entries of a timer that is settled. Where somebody may ask what became of it, an entry that tells
// comes first.
func (w *worker) remove(f *flight) {
	t := w.timers
	if f.timer.Again() {
		t.settling[f] = true
	}
	if t.stream.Tells(f.timer) {
		w.publish(t.stream.Name(), t.stream.Over(f.timer, f.request), func(a storeAnswer) { w.mail.Put(told{f, a}) })
		return
	}
	t.unremoved = append(t.unremoved, f)
	w.removeOn()
}

func (e told) takeIn(w *worker, m moment) {
	s := e.flight.timer.Told(alarm.Answer{Ack: e.ack, Err: e.err})
	if s.Kind == alarm.Remove {
		w.leftOut(e.flight)
	}
	if !e.flight.timer.Again() {
		delete(w.timers.settling, e.flight)
	}
	w.apply(e.flight, timerStep(m, e.flight, s), m)
}

// settle removes the entries of those that have arrived, where that has failed and would be tried again later.
func (w *worker) settle() {
	for f := range w.timers.settling {
		if w.flights.takeOff(f) {
			w.remove(f)
		}
	}
}

// removeOn removes entries, of some timers at once.
func (w *worker) removeOn() {
	t := w.timers
	for len(t.unremoved) > 0 && t.removing < removers {
		f := t.unremoved[0]
		t.unremoved = t.unremoved[1:]
		t.removing++
		subject, generation, what := f.timer.Subject, f.timer.Generation, f.timer.Removal
		w.ask(func(ctx context.Context) event {
			return removed{f, t.stream.RemoveEntries(ctx, subject, generation, what)}
		})
	}
}

func (e removed) takeIn(w *worker, m moment) {
	w.timers.removing--
	w.removeOn()
	w.apply(e.flight, timerStep(m, e.flight, e.flight.timer.AfterRemoval(e.err)), m)
}
