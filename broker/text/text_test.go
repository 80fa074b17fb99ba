package text

import (
	"math"
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
		{math.MinInt64, "-106751d23h47m16s"}, // the age of the zero time
		{math.MaxInt64, "106751d23h47m16s"},
	} {
		if got := Span(test.d); got != test.want {
			t.Errorf("span of %s: got %q, want %q", test.d, got, test.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "-", 1.5: "1s500ms", -2: "-2s", 1e300: "106751d23h47m16s", math.Inf(-1): "-106751d23h47m16s",
	} {
		if got := Seconds(seconds); got != want {
			t.Errorf("%g seconds: got %q, want %q", seconds, got, want)
		}
	}
}

// TestShellQuote: special characters of a shell are quoted.
func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"orders.expire": "orders.expire", "orders.>": "'orders.>'", "": "''", "--all": "'--all'",
		"$(rm -rf ~)": "'$(rm -rf ~)'", "it's": `'it'\''s'`, "a;b": "'a;b'", "a`b`": "'a`b`'", "a\nb": "'a·b'", "é": "'é'",
	} {
		if got := ShellQuote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
