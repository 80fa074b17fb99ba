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
