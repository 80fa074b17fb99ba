package client

import (
	"testing"
	"time"

	"delaybroker/levels"
)

// NewJetStream is exported for tests that wrap a store.
var NewJetStream = newJetStream

// TestGuessesAreAsLong: the guessed level name of a delay means this delay. If a default level has the delay, the guess
// is the name of that level.
func TestGuessesAreAsLong(t *testing.T) {
	t.Parallel()
	l, now := newLevelGuess(levels.Ladder{}), time.Now()
	for _, name := range levels.PlainDurations() {
		d, err := levels.ParseDuration(name)
		if err != nil {
			t.Fatal(err)
		}
		guess, ok := l.level(d, now)
		if got, err := levels.ParseDuration(guess); !ok || err != nil || got != d {
			t.Errorf("%s: got %q, %t, want a name for %s", name, guess, ok, d)
		}
	}
	for _, level := range levels.Default().Levels() {
		if guess, _ := l.level(level.Delay, now); guess != level.Name {
			t.Errorf("%s: got %q, want the default level", level.Name, guess)
		}
	}
	for _, d := range []time.Duration{1, 1234 * time.Millisecond, 2500 * time.Second, 1<<63 - 1} {
		if guess, ok := l.level(d, now); ok && d != 1 {
			t.Errorf("%s: got %q, want none", d, guess)
		}
	}
}
