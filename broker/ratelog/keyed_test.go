package ratelog

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// keyed is a Keyed for few keys, with the lines logged since the last call, each as one word.
func keyed(most int) (k *Keyed, said func() string) {
	var out bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}
	k = NewKeyed(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: plain})), time.Minute, most)
	return k, func() string {
		defer out.Reset()
		return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", "; ")
	}
}

func (k *Keyed) sayAll(keys ...string) {
	for _, key := range keys {
		k.Log(key, slog.LevelWarn, "target refuses", "target", key)
	}
}

// step is a pause, the keys logged after it, and the resulting lines.
type step struct {
	wait time.Duration
	keys []string
	want string
}

// play runs the steps on a Keyed for two keys.
func play(t *testing.T, steps []step) {
	t.Helper()
	k, said := keyed(2)
	for _, step := range steps {
		time.Sleep(step.wait)
		k.sayAll(step.keys...)
		if got := said(); got != step.want {
			t.Errorf("after %s, %v: got %q, want %q", step.wait, step.keys, got, step.want)
		}
	}
}

// TestKeyedTellsKeysApart: each key has its own interval, to the nanosecond. Its line has the number of suppressed
// ones.
func TestKeyedTellsKeysApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		play(t, []step{
			{0, []string{"a", "a", "b", "a"}, "target=a; target=b"},
			{time.Minute - 1, []string{"a"}, ""},
			{1, []string{"b", "a"}, "target=b; target=a more=3"},
			{time.Hour, []string{"a", "b"}, "target=a; target=b"},
		})
	})
}

// TestKeyedCountsWhatItForgets: keys without an entry share one line in an interval, a key whose interval is over makes
// room for another, and every suppressed line is counted.
func TestKeyedCountsWhatItForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		play(t, []step{
			{0, []string{"a", "a", "b", "c", "d", "c"}, "target=a; target=b; target=c"}, // no room for c and d
			{30 * time.Second, []string{"a", "c"}, ""},
			// c takes the place of a. Left out were: a twice, c itself twice, and d once.
			{30 * time.Second, []string{"c"}, "target=c others=5"},
			{0, []string{"d", "b", "b"}, "target=d; target=b"},               // d in the place of b, which has no room
			{time.Minute, []string{"b", "c"}, "target=b others=1; target=c"}, // in the places of c and d
		})
	})
}

// TestKeyedIsBounded: a flood of subjects that contain ids fills neither the memory nor the log, and is counted.
func TestKeyedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, flood, minutes = 8, 10_000, 5
		k, said := keyed(most)
		for minute := range minutes {
			for n := range flood {
				k.sayAll(fmt.Sprint("orders.", minute, ".", n))
			}
			if got := len(k.known); got != most || k.byLast.Len() != most {
				t.Fatalf("it remembers %d keys, want %d", got, most)
			}
			lines := said()
			if got, want := strings.Count(lines, "target="), most+1; got != want {
				t.Errorf("%d lines in a minute, want %d", got, want)
			}
			if want := fmt.Sprintf(" others=%d", flood-most-1); minute > 0 && strings.Count(lines, want) != 1 {
				t.Errorf("minute %d: got no %q in %q", minute, want, lines)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestKeyedOfManyGoroutines: of concurrent calls, exactly one logs its line.
func TestKeyedOfManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, said := keyed(1)
		var saying sync.WaitGroup
		for range 100 {
			saying.Go(func() { k.sayAll("a") })
		}
		saying.Wait()
		time.Sleep(time.Minute)
		k.sayAll("a")
		if got, want := said(), "target=a; target=a more=99"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
