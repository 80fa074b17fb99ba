package message

import (
	"strings"
	"time"

	"delaybroker/levels"
)

// due returns the due time that the subject and Delay-Until request.
func (p Policy) due(in Incoming, addr Address, b Block) (time.Time, *Problem) {
	accepted := in.At
	until, problem := b.Value(HeaderUntil)
	if problem != nil {
		return accepted, problem
	}
	hasUntil := b.Delay[HeaderUntil] != nil // also for an empty header, which ParseTime refuses
	if b.Delay[HeaderFor] != nil || hasUntil && addr.Form != FormLevel {
		return accepted, Problemf(TimeTwice,
			"the subject already has the delay: leave out Delay-For, and leave out Delay-Until except on %s.<level> subjects",
			p.Names.Prefix())
	}
	if addr.Form != FormLevel && hasTimePart(addr.Target) {
		return accepted, splitTimeProblem(addr)
	}
	if addr.Form == FormTime {
		due, err := ParseTime(addr.Token)
		if err != nil {
			return accepted, err
		}
		return due, p.CheckDelay(accepted, due)
	}
	wait, err := levels.ParseDuration(addr.Token)
	if err != nil {
		return accepted, Problemf(BadTime, "%v", err)
	}
	due := accepted.Add(wait)
	if hasUntil {
		levelEnd := due // the end of the level's delay
		if due, problem = ParseTime(until); problem != nil {
			return accepted, problem
		}
		if due.Before(levelEnd) {
			return accepted, Problemf(UntilEarly,
				"Delay-Until %s is before the end of the level %s, in which the message waits first: choose a shorter level "+
					"or %s.<time>",
				Excerpt(until), addr.Token, p.Names.at)
		}
	}
	return due, p.CheckDelay(accepted, due)
}

// CheckDelay returns a problem if the delay from start to due exceeds MaxDelay.
func (p Policy) CheckDelay(start, due time.Time) *Problem {
	if p.MaxDelay > 0 && due.Sub(start) > p.MaxDelay {
		return Problemf(TooFar, "due %s is more than %s ahead (DELAY_MAX_DELAY)", due.UTC().Format(time.RFC3339),
			levels.FormatDuration(p.MaxDelay))
	}
	return nil
}

// hasTimePart reports whether the first token of a target could be the part after the dot of a time or duration, as in
// "1732060800.123", "1.5s", "…00.000Z", or a large float as Go prints it, "1.732060800123e+09". On delayin and delayat,
// the broker refuses such a target, because a message to orders.x would go to 123.orders.x.
func hasTimePart(target string) bool {
	first, _, _ := strings.Cut(target, ".")
	suffix := strings.TrimLeft(first, "0123456789")
	if suffix == first {
		return false
	}
	switch suffix {
	case "", "ms", "s", "m", "h", "d", "w", "Z", "z":
		return true
	}
	rest := strings.TrimLeft(suffix, "eE+-") // without the beginning of an exponent or of a zone
	return rest != suffix && strings.Trim(rest, "0123456789:") == ""
}

func splitTimeProblem(addr Address) *Problem {
	first, _, _ := strings.Cut(addr.Target, ".")
	return Problemf(BadTime,
		"a dot splits a subject, so the time is %s and the target begins with %s: write whole seconds or milliseconds, "+
			"or use the header Delay-Until on a level subject",
		Excerpt(addr.Token), Excerpt(first))
}
