package levels

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	// maxDurationLen bounds the input of ParseDuration, in bytes. The longest result of FormatDuration,
	// "106751d23h47m16s855ms", has 21.
	maxDurationLen = 32

	digits = "0123456789"
)

type unit struct {
	name   string
	length time.Duration
}

// units are sorted from the longest to the shortest, the order in which a duration is written.
var units = []unit{
	{"w", week},
	{"d", day},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
}

// ParseDuration parses one or more pairs of a whole number and a unit (w, d, h, m, s, ms), from the longest unit to the
// shortest and each at most once: "30m", "1h30m", "2d12h", "1500ms". A day always has 24 hours, and a week 7 days.
//
// ParseDuration is stricter than [time.ParseDuration] because a duration is one token of a subject. The dot of a
// fraction would split that token, a number without a unit is ambiguous, and signs, spaces and upper case are mostly
// mistakes. Leading zeros are refused, but a single 0 is valid: a program may format a remaining time of zero as "0s".
//
// Every error wraps [ErrDuration].
func ParseDuration(s string) (time.Duration, error) {
	if len(s) > maxDurationLen {
		return 0, fmt.Errorf("%w of %d bytes: at most %d, such as 1h30m", ErrDuration, len(s), maxDurationLen)
	}
	refuse := func(format string, args ...any) (time.Duration, error) {
		return 0, fmt.Errorf("%w %q: %s", ErrDuration, s, fmt.Sprintf(format, args...))
	}
	if s == "" {
		return refuse("empty; write a number and a unit, such as 30m")
	}
	if strings.ContainsFunc(s, unicode.IsUpper) {
		return refuse("write it in lower case, such as 15m or 1h30m")
	}

	var total time.Duration
	allowed := units // the units shorter than every unit read so far
	for rest := s; rest != ""; {
		name := strings.TrimLeft(rest, digits)
		number := rest[:len(rest)-len(name)]
		rest = ""
		if i := strings.IndexAny(name, digits); i >= 0 {
			name, rest = name[:i], name[i:]
		}
		switch {
		case number == "":
			return refuse("%q is not a number; start with a digit, such as 30m", name)
		case name == "":
			return refuse("%s has no unit; write %[1]ss for seconds, %[1]sms for milliseconds", number)
		case len(number) > 1 && number[0] == '0':
			return refuse("%s has a leading zero; leave it out", number)
		}

		matches := func(u unit) bool { return u.name == name }
		i := slices.IndexFunc(allowed, matches)
		switch {
		case i < 0 && !slices.ContainsFunc(units, matches):
			return refuse("%q is not a unit; write whole numbers of w, d, h, m, s and ms, such as 1h30m or 1500ms", name)
		case i < 0:
			return refuse("%q is out of order; go from the longest unit to the shortest, each once, such as 1h30m", name)
		}
		length := allowed[i].length
		allowed = allowed[i+1:]

		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > int64((math.MaxInt64-total)/length) {
			return refuse("too long; at most about 106751d (292 years)")
		}
		total += time.Duration(n) * length
	}
	return total, nil
}

// isPlain reports whether a valid duration s has only one number and unit.
func isPlain(s string) bool {
	return !strings.ContainsAny(strings.TrimLeft(s, digits), digits)
}

// FormatDuration returns d in the notation of [ParseDuration], from days down to milliseconds, without units that are
// zero: "30m", "1d12h", "1s500ms". It does not use weeks, because people count days.
//
// FormatDuration rounds up to milliseconds, so that a message that waits for the formatted duration is never early.
// Zero and negative durations are "0s".
func FormatDuration(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	// In milliseconds, because the largest Duration cannot be rounded up in nanoseconds.
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	var b []byte
	for _, u := range units[1:] { // without weeks
		length := u.length.Milliseconds()
		if n := ms / length; n > 0 {
			b = strconv.AppendInt(b, n, 10)
			b = append(b, u.name...)
		}
		ms %= length
	}
	return string(b)
}
