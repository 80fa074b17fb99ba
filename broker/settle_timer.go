package broker

import (
	"context"
	"time"

	"delaybroker/broker/alarm"
)

// This file removes the entries of named timers that are settled, after what is due.

const (
	// settleEvery is how soon a stop tries again to remove the entries of what has arrived.
	settleEvery = 100 * time.Millisecond
	// busyLane is how many answers a lane waits for, those about removals apart, when removals wait for it to be idle.
	busyLane = 64
	// maxUnremoved is how many timers wait at most until the lane is idle, and maxUnremovedFor how long: far less than
	// the time after which another instance would take their firings for left behind.
	maxUnremoved    = 1 << 16
	maxUnremovedFor = 10 * time.Second
)

// unremoved is a timer whose entries are to be removed.
type unremoved struct {
	*flight
	since time.Time // local
}

// remove removes the entries of a timer that is settled, once nothing that is due waits. Where somebody may ask what
// became of it, an entry that tells comes first.
func (w *worker) remove(f *flight) {
	t := w.timers
	if f.timer.Again() {
		t.settling[f] = true
	}
	w.unload(f)
	t.unremoved = append(t.unremoved, unremoved{f, time.Now()})
}

// removeOn removes entries, of some timers at once.
func (w *worker) removeOn(local time.Time) {
	t := w.timers
	for len(t.unremoved) > 0 && t.removing < removers && !w.removalsWait(local) {
		f := t.unremoved[0].flight
		t.unremoved = t.unremoved[1:]
		t.removing++
		if t.stream.Tells(f.timer) {
			w.publish(t.stream.Name(), t.stream.Over(f.timer, f.request), func(a storeAnswer) { w.mail.Put(told{f, a}) })
			continue
		}
		subject, generation, what := f.timer.Subject, f.timer.Generation, f.timer.Removal
		w.ask(func(ctx context.Context) event {
			alone, err := t.stream.RemoveEntries(ctx, subject, generation, what)
			return removed{f, alone, err}
		})
	}
}

// removalsWait reports whether what is due comes before removals.
func (w *worker) removalsWait(local time.Time) bool {
	t := w.timers
	if w.stopped.Load() || len(t.unremoved) > maxUnremoved || w.full() ||
		local.Sub(t.unremoved[0].since) > maxUnremovedFor {
		return false
	}
	return w.flights.underway-t.removing > busyLane || len(t.uncopied)+len(t.unlooked) > 0
}

func (e told) takeIn(w *worker, m moment) {
	w.timers.removing--
	s := e.flight.timer.Told(alarm.Answer{Ack: e.ack, Err: e.err})
	if s.Kind == alarm.Remove {
		w.leftOut(e.flight)
	}
	if !e.flight.timer.Again() {
		delete(w.timers.settling, e.flight)
	}
	w.apply(e.flight, timerStep(m, e.flight, s), m)
}

func (e removed) takeIn(w *worker, m moment) {
	w.timers.removing--
	if e.err == nil {
		w.timers.stream.Removed(e.flight.timer, e.alone)
	}
	w.apply(e.flight, timerStep(m, e.flight, e.flight.timer.AfterRemoval(e.err)), m)
}

// settle removes the entries of those that have arrived, where that has failed and would be tried again later.
func (w *worker) settle() {
	for f := range w.timers.settling {
		if w.flights.takeOff(f) {
			w.remove(f)
		}
	}
	w.removeOn(time.Now())
}
