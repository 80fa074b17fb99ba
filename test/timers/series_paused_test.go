package timers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestPausedSeriesIsNotMoved: a paused series has no pending round, so no round can be moved. A move would make it
// fire.
func TestPausedSeriesIsNotMoved(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := everyHour(t, s)
		time.Sleep(10 * time.Minute)
		paused := c.Do(harness.NewChange(timer.Pause, "k", 0))
		for name, set := range map[string]func(*store.Change){
			"later":   func(w *store.Change) { w.By = 5 * time.Minute },
			"earlier": func(w *store.Change) { w.By = -5 * time.Minute },
			"for":     func(w *store.Change) { w.For = "10m" },
			"until":   func(w *store.Change) { w.Until = time.Now().Add(time.Minute) },
		} {
			w := harness.NewChange(timer.Move, "k", 0)
			set(&w)
			a, err := c.Timers.Do(t.Context(), w)
			if refused := (*store.Refusal)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Sentence, "resume") {
				t.Errorf("%s: it is %+v, %v", name, a, err)
			}
			time.Sleep(15 * time.Minute)
			c.Check(harness.NewChange(timer.Get, "k", 0), timer.Paused, paused.Generation)
		}
		if got := in.All(); len(got) != 0 {
			t.Errorf("while it was paused, %+v arrived", got)
		}
		time.Sleep(time.Until(start.Add(90 * time.Minute)))
		if a := c.Do(harness.NewChange(timer.Resume, "k", 0)); a.Outcome != timer.Pending {
			t.Errorf("it is %+v", a)
		}
		time.Sleep(time.Hour)
		in.Rounds(t, g, start, 90*time.Minute, 2*time.Hour)
	})
}

// TestResumeLeavesWhatIsNotPaused: resuming a series that is not paused changes nothing. A moved round keeps its time.
func TestResumeLeavesWhatIsNotPaused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := everyHour(t, s)
		time.Sleep(10 * time.Minute)
		w := harness.NewChange(timer.Move, "k", g)
		w.For = "40m"
		moved := c.Do(w)
		a := c.Do(harness.NewChange(timer.Resume, "k", 0))
		if a.Outcome != timer.Pending || a.Generation != moved.Generation || !a.Due.Equal(moved.Due) {
			t.Errorf("it is %+v, and was %+v", a, moved)
		}
		c.Check(harness.NewChange(timer.Resume, "k", g), timer.Conflict, moved.Generation)
		time.Sleep(2 * time.Hour)
		in.Rounds(t, g, start, 50*time.Minute, 2*time.Hour)
	})
}
