package text

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{1500 * time.Microsecond, "2ms"},
		{1550 * time.Millisecond, "1s500ms"},
		{90*time.Second + 999*time.Millisecond, "1m30s"},
		{49*time.Hour + time.Second, "2d1h1s"},
		{-2 * time.Second, "-2s"},
	} {
		if got := Span(test.d); got != test.want {
			t.Errorf("span of %s: got %q, want %q", test.d, got, test.want)
		}
	}
}
