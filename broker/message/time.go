package message

import (
	"strconv"
	"strings"
	"time"
)

// minMillis and maxMillis bound the unix milliseconds that TimeToken writes: ParseTime parses a number as milliseconds
// if it has 13 or 14 digits. The bounds are in the years 2001 and 5138.
const minMillis, maxMillis = 1_000_000_000_000, 99_999_999_999_999

// TimeToken formats a time as one token of a subject: a whole second in RFC 3339, and any other time in unix
// milliseconds. It rounds the time up to the next millisecond. Before 2001 and after 5138, where ParseTime does not
// parse unix milliseconds, TimeToken rounds the time up to the next second.
func TimeToken(t time.Time) string {
	t = roundUp(t, time.Millisecond)
	ms := t.UnixMilli()
	if second := roundUp(t, time.Second); t.Equal(second) || ms < minMillis || ms > maxMillis {
		return second.UTC().Format("2006-01-02T15:04:05Z")
	}
	return strconv.FormatInt(ms, 10)
}

func roundUp(t time.Time, unit time.Duration) time.Time {
	if floor := t.Truncate(unit); floor.Before(t) {
		return floor.Add(unit)
	}
	return t
}

// ParseTime parses RFC 3339 with a zone and at most nine digits of fraction, unix seconds (up to 11 digits) or unix
// milliseconds (13 or 14 digits: until the year 5138). It refuses twelve digits: the milliseconds would be before 2001,
// and the seconds after 5138, such as .NET's latest time, with which its users mean "never". It refuses the layouts
// that time.Parse accepts and the RFC does not allow.
func ParseTime(s string) (time.Time, *Problem) {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseInt(s, 10, 64)
		switch {
		case err != nil || len(s) > 14:
			return time.Time{}, malformedTime(s)
		case len(s) == 12:
			return time.Time{}, Problemf(BadTime, "the time %s has 12 digits: want 10 digits for unix seconds, or 13 digits "+
				"for unix milliseconds", s)
		case len(s) <= 11:
			return time.Unix(n, 0).UTC(), nil
		}
		return time.UnixMilli(n).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !rfc3339(s) || !writable(t) {
		return time.Time{}, malformedTime(s)
	}
	return t.UTC(), nil
}

// writable reports whether t in UTC can be formatted as RFC 3339, which has only the years 0 to 9999. A valid time with
// a zone may be outside these years in UTC. The next lane could not parse a state header with such a time.
func writable(t time.Time) bool {
	year := t.UTC().Year()
	return 0 <= year && year <= 9999
}

// rfc3339 checks the shape "2026-11-20T10:00:00[.digits](Z|±hh:mm)".
func rfc3339(s string) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || strings.IndexByte(s, ',') >= 0 || s[13] != ':' {
		return false
	}
	rest := s[seconds:]
	if rest[0] == '.' {
		zone := strings.TrimLeft(rest[1:], "0123456789")
		if digits := len(rest) - 1 - len(zone); digits < 1 || digits > 9 {
			return false
		}
		rest = zone
	}
	return rest == "Z" || len(rest) == len("+00:00")
}

func malformedTime(s string) *Problem {
	return Problemf(BadTime,
		"the time %s cannot be read: want RFC 3339 with a zone (2026-11-20T10:00:00Z), unix seconds, or unix milliseconds",
		Excerpt(s))
}
