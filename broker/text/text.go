// Package text formats durations, times, lists, bodies and untrusted text for people.
package text

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"delaybroker/levels"
)

// Span formats a duration for people. A duration of a minute or more loses the fractions of a second. A shorter
// duration of a second or more keeps one decimal place.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-max(d, -math.MaxInt64)) // the least duration has no positive counterpart
	case d >= time.Minute:
		d = d.Truncate(time.Second)
	case d >= time.Second:
		d = d.Truncate(100 * time.Millisecond)
	}
	return levels.FormatDuration(d)
}

// Seconds formats a number of seconds as Span does, and zero as a dash.
func Seconds(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	const most = float64(math.MaxInt64 / time.Second)
	return Span(time.Duration(max(-most, min(seconds, most)) * float64(time.Second)))
}

// Moment formats a time for people. It returns "" for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// ShortMoment formats a time for people, truncated to a second.
func ShortMoment(t time.Time) string { return Moment(t.Truncate(time.Second)) }

// Millisecond formats a time for a list: to the millisecond, with its zone.
func Millisecond(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Printable returns untrusted text as one line of at most maxChars characters. It replaces each character that cannot
// be printed.
func Printable(s string, maxChars int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxChars {
		return string(runes[:maxChars-1]) + "…"
	}
	return s
}

// Sentence returns an untrusted sentence as one line for people, of at most 600 characters.
func Sentence(s string) string { return Printable(s, 600) }

// ShortList lists at most 14 names, and the number of the other names.
func ShortList(names []string) string {
	const maxNames = 14
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// ShellQuote returns untrusted text as one argument for a POSIX shell, of at most 600 characters. It quotes the text if
// the text needs quotes.
func ShellQuote(word string) string {
	word = Printable(word, 600)
	plain := word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/+@%,-", r))
	}) < 0 && word[0] != '-'
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
