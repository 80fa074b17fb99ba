package client

import (
	"testing"
	"time"

	"delaybroker/levels"
)

// NewJetStream is exported for tests that replace a store.
var NewJetStream = newJetStream

// TestGuessesAreAsLong: the name that the client guesses for a delay means that delay. For a known level, it is the
// name of the level.
func TestGuessesAreAsLong(t *testing.T) {
	t.Parallel()
	l, now := newLadder(levels.Ladder{}), time.Now()
	for _, name := range levels.PlainDurations() {
		d, err := levels.ParseDuration(name)
		if err != nil {
			t.Fatal(err)
		}
		guess, ok := l.token(d, now)
		if as, err := levels.ParseDuration(guess); !ok || err != nil || as != d {
			t.Errorf("%s: got %q, %t, want a name for %s", name, guess, ok, d)
		}
	}
	for _, level := range levels.Default().Levels() {
		if guess, _ := l.token(level.Delay, now); guess != level.Name {
			t.Errorf("%s: got %q", level.Name, guess)
		}
	}
	for _, d := range []time.Duration{1, 1234 * time.Millisecond, 2500 * time.Second, 1<<63 - 1} {
		if guess, ok := l.token(d, now); ok && d != 1 {
			t.Errorf("%s: got %q, want none", d, guess)
		}
	}
}
