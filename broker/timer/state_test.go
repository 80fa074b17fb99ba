package timer_test

import (
	"testing"
	"time"

	"delaybroker/broker/timer"
)

// TestCursor: a written cursor is parsed unchanged. No other text is parsed as a cursor.
func TestCursor(t *testing.T) {
	want := timer.Cursor{Next: 17, Created: time.Date(2026, 11, 20, 10, 0, 0, 123, time.UTC)}
	if got, ok := timer.ParseCursor([]byte(want.String()), 17); !ok || got != want {
		t.Errorf("got %+v %t, want %+v", got, ok, want)
	}
	if _, ok := timer.ParseCursor([]byte(want.String()), 16); ok {
		t.Error("a cursor whose Next is above its own sequence is valid, want invalid")
	}
	for _, body := range []string{
		"", "armed", "armed 17", "armed 17 1 ", "armed  17 1", "armed 017 1", "armed +17 1", "armed 17 1 2", "Armed 17 1",
		"armed 0 1", "armed -1 1", "armed 17 1.0", "armed 18446744073709551616 1", "armed 17 99999999999999999999",
		"armed 17 1\n",
	} {
		if got, ok := timer.ParseCursor([]byte(body), 100); ok {
			t.Errorf("%q is parsed as %+v, want invalid", body, got)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add([]byte(timer.Cursor{Next: 17, Created: time.Unix(1, 2)}.String()), uint64(20))
	f.Add([]byte("armed 17"), uint64(20))
	f.Fuzz(func(t *testing.T, body []byte, own uint64) {
		if c, ok := timer.ParseCursor(body, own); ok && (c.String() != string(body) || c.Next == 0 || c.Next > own) {
			t.Errorf("%q is parsed as %+v, want invalid", body, c)
		}
	})
}
