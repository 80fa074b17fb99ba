package message

import (
	"strings"
	"time"

	"delaybroker/levels"
)

// due returns the due time that the subject and Delay-Until request.
func (p Policy) due(in Incoming, addr Address, s Block) (time.Time, *Problem) {
	at := in.At
	until, problem := s.Single(HeaderUntil)
	if problem != nil {
		return at, problem
	}
	hasUntil := s.Delay[HeaderUntil] != nil // an empty header counts as a bad time, not as a missing header
	if s.Delay[HeaderFor] != nil || hasUntil && addr.Form != FormLevel {
		return at, Problemf(TimeTwice,
			"the subject already has the delay: leave out Delay-For, and leave out Delay-Until except on %s.<level> subjects",
			p.Names.Prefix())
	}
	if addr.Form == FormTime {
		if dotted(addr.Target) {
			return at, splitTime(addr)
		}
		due, err := ParseTime(addr.Token)
		if err != nil {
			return at, err
		}
		return due, p.CheckDelay(at, due)
	}
	wait, err := levels.ParseDuration(addr.Token)
	if addr.Form == FormIn && dotted(addr.Target) {
		return at, splitTime(addr)
	}
	if err != nil {
		return at, Problemf(BadTime, "%v", err)
	}
	due := at.Add(wait)
	if hasUntil {
		end := due // the end of the level's delay
		if due, problem = ParseTime(until); problem != nil {
			return at, problem
		}
		if due.Before(end) {
			return at, Problemf(UntilEarly,
				"Delay-Until %s is before the end of the level %s, in which the message waits first: choose a shorter level "+
					"or %s.<time>",
				Excerpt(until), addr.Token, p.Names.at)
		}
	}
	return due, p.CheckDelay(at, due)
}

// CheckDelay checks a requested due time against the bounds of a delay that begins at a given time.
func (p Policy) CheckDelay(at, due time.Time) *Problem {
	if p.MaxDelay > 0 && due.Sub(at) > p.MaxDelay {
		return Problemf(TooFar, "due %s is more than %s ahead (DELAY_MAX_DELAY)", due.UTC().Format(time.RFC3339),
			levels.FormatDuration(p.MaxDelay))
	}
	return nil
}

// dotted reports whether a target begins with the second half of a time that contained a dot: "1732060800.123", "1.5s",
// "…00.000Z", or a large float as Go and others print it, "1.732060800123e+09". The broker refuses such a target on
// delayin and delayat. Otherwise the message would go to the subject "123.orders.x".
func dotted(target string) bool {
	first, _, _ := strings.Cut(target, ".")
	digits := strings.TrimLeft(first, "0123456789")
	if digits == first {
		return false
	}
	switch digits {
	case "", "ms", "s", "m", "h", "d", "w", "Z", "z":
		return true
	}
	rest := strings.TrimLeft(digits, "eE+-") // without the sign of an exponent or a zone
	return rest != digits && strings.Trim(rest, "0123456789:") == ""
}

func splitTime(addr Address) *Problem {
	first, _, _ := strings.Cut(addr.Target, ".")
	return Problemf(BadTime,
		"a dot splits a subject, so the time is %s and the target begins with %s: write whole seconds or milliseconds, "+
			"or use the header Delay-Until on a level subject",
		Excerpt(addr.Token), Excerpt(first))
}
