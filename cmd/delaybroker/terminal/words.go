package terminal

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"
)

// Counted formats a number of things: "1 reply", "2 replies".
func Counted(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, english.PluralWord(n, noun, ""))
}

// Milliseconds returns a duration in milliseconds, with three decimals.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Lateness formats a lateness, which may be negative: with an absolute value below ten seconds in milliseconds,
// otherwise in whole seconds.
func Lateness(d time.Duration) string {
	if -10*time.Second < d && d < 10*time.Second {
		return fmt.Sprintf("%.1f ms", Milliseconds(d))
	}
	return d.Round(time.Second).String()
}
