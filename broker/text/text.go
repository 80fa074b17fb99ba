// Package text is how durations, times, lists and the words of strangers are shown to people.
package text

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"delaybroker/levels"
)

// Span is a duration for people: the smaller it is, the finer.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d >= time.Minute:
		d = d.Truncate(time.Second)
	case d >= time.Second:
		d = d.Truncate(100 * time.Millisecond)
	}
	return levels.FormatDuration(d)
}

// Seconds is a Span, and a dash for none.
func Seconds(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return Span(time.Duration(seconds * float64(time.Second)))
}

// Moment is a time for people; empty for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Second is a time for people, to the second.
func Second(t time.Time) string { return Moment(t.Truncate(time.Second)) }

// Printable is what a stranger wrote, in one line, at most so many characters, and with nothing that a terminal would
// act on.
func Printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// Few names some of many.
func Few(all []string) string {
	const most = 14 // as many as there are patterns to grant
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
