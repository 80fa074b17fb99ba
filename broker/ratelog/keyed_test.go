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

// keyed returns a Keyed with at most maxKeys entries, and a function that returns the attributes of the lines that were
// logged since its last call.
func keyed(maxKeys int) (k *Keyed, logged func() string) {
	var out bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}
	k = NewKeyed(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: plain})), time.Minute, maxKeys)
	return k, func() string {
		defer out.Reset()
		return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", "; ")
	}
}

// logAll logs a line for each key.
func (k *Keyed) logAll(keys ...string) {
	for _, key := range keys {
		k.Log(key, slog.LevelWarn, "target refuses", "target", key)
	}
}

// step is a wait, the keys that are logged after the wait, and the resulting lines.
type step struct {
	wait time.Duration
	keys []string
	want string
}

// play runs the steps on a Keyed for two keys.
func play(t *testing.T, steps []step) {
	t.Helper()
	k, logged := keyed(2)
	for _, step := range steps {
		time.Sleep(step.wait)
		k.logAll(step.keys...)
		if got := logged(); got != step.want {
			t.Errorf("after %s, %v: got %q, want %q", step.wait, step.keys, got, step.want)
		}
	}
}

// TestKeyedSeparatesKeys: each key has its own interval, exact to the nanosecond. The next line of a key has the number
// of its suppressed lines.
func TestKeyedSeparatesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		play(t, []step{
			{0, []string{"a", "a", "b", "a"}, "target=a; target=b"},
			{time.Minute - 1, []string{"a"}, ""},
			{1, []string{"b", "a"}, "target=b; target=a more=3"},
			{time.Hour, []string{"a", "b"}, "target=a; target=b"},
		})
	})
}

// TestKeyedCountsAllKeys: keys without an entry share one line in an interval. A new key takes the place of a key whose
// interval has ended. Every suppressed line is counted.
func TestKeyedCountsAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		play(t, []step{
			{0, []string{"a", "a", "b", "c", "d", "c"}, "target=a; target=b; target=c"}, // no room for c and d
			{30 * time.Second, []string{"a", "c"}, ""},
			// c takes the place of a. The suppressed lines were two of a, two of c, and one of d.
			{30 * time.Second, []string{"c"}, "target=c others=5"},
			{0, []string{"d", "b", "b"}, "target=d; target=b"},               // d takes the place of b, so b has no entry
			{time.Minute, []string{"b", "c"}, "target=b others=1; target=c"}, // b and c take the places of c and d
		})
	})
}

// TestKeyedIsBounded: for a flood of different keys, the number of entries and of lines is bounded, and all suppressed
// lines are counted.
func TestKeyedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxKeys, flood, minutes = 8, 10_000, 5
		k, logged := keyed(maxKeys)
		for minute := range minutes {
			for n := range flood {
				k.logAll(fmt.Sprint("orders.", minute, ".", n))
			}
			if got := len(k.entries); got != maxKeys || k.order.Len() != maxKeys {
				t.Fatalf("there are %d entries, want %d", got, maxKeys)
			}
			lines := logged()
			if got, want := strings.Count(lines, "target="), maxKeys+1; got != want {
				t.Errorf("%d lines in a minute, want %d", got, want)
			}
			if want := fmt.Sprintf(" others=%d", flood-maxKeys-1); minute > 0 && strings.Count(lines, want) != 1 {
				t.Errorf("minute %d: got no %q in %q", minute, want, lines)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestKeyedOfManyGoroutines: of concurrent calls, exactly one logs its line.
func TestKeyedOfManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, logged := keyed(1)
		var logging sync.WaitGroup
		for range 100 {
			logging.Go(func() { k.logAll("a") })
		}
		logging.Wait()
		time.Sleep(time.Minute)
		k.logAll("a")
		if got, want := logged(), "target=a; target=a more=99"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
