package message

import (
	"cmp"
	"hash/fnv"
	"io"
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

// spread returns the due time with Delay-Spread: the requested one, and a part of the spread. The client's Nats-Msg-Id
// or the key and the target of a timer decide the part, or else the id of the message. So every instance computes the
// same due time, and a timer that is set again keeps its part.
func (p Policy) spread(r Request, due time.Time, b Block) (time.Time, *Problem) {
	value, problem := b.Value(HeaderSpread)
	if problem != nil || b.Delay[HeaderSpread] == nil {
		return due, problem
	}
	limit, err := levels.ParseDuration(value)
	if err != nil {
		return due, Problemf(BadOption, "Delay-Spread: %v", err)
	}
	latest := due.Add(limit)
	if problem := p.CheckDelay(r.Accepted, latest); problem != nil {
		return due, Problemf(TooFar, "with Delay-Spread %s, %s", Excerpt(value), problem.Sentence)
	}
	if !writable(latest) {
		return due, Problemf(TooFar, "with Delay-Spread %s, due after the year 9999: leave it out", Excerpt(value))
	}
	decisive := cmp.Or(r.MsgID, r.ID)
	if p.Names.Parse(r.Subject).Form == FormTimer {
		decisive = r.Subject
	}
	return due.Add(PartOf(limit, decisive)), nil
}

// PartOf returns a part of a duration, in whole milliseconds. It depends only on the id. The parts for many ids are
// spread evenly.
func PartOf(limit time.Duration, id string) time.Duration {
	if limit <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, id) // a hash's Write never fails
	return time.Duration(h.Sum64() % uint64(limit)).Truncate(time.Millisecond)
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
