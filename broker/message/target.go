package message

import (
	"slices"
	"strings"
	"time"
)

// Bounds of a target. nats-server closes a connection that publishes on a subject of 5,000 bytes, so each attempt to
// deliver to such a subject would interrupt all other deliveries.
const (
	MaxTarget       = 256 // bytes
	maxTargetTokens = 16
)

// Policy decides which requests are allowed.
type Policy struct {
	Names Names
	// Targets are the patterns of the allowed targets. If empty, all targets are allowed that the other rules of
	// CheckTarget allow. NATS permissions also bound the targets of each client.
	Targets []string
	// HeaderTargets are the patterns of the targets that a Delay-Target header may name. If empty, the header is not
	// allowed. With the header, a client that may publish on "delay.30m" reaches all these targets.
	HeaderTargets []string
	// MaxDelay is the maximum time between acceptance and the due time. If zero, there is no maximum.
	MaxDelay time.Duration
	// Attempts returns the number of refusals by a target after which a message becomes a dead letter. A client's
	// Delay-Max-Attempts must not exceed this number. If the function is nil, any Delay-Max-Attempts is allowed.
	Attempts func(target string) int
	// Keys verify seals. If nil, no message needs a seal.
	Keys *Keys
	// Format is the newest format that can be parsed. If zero, the constant Format applies.
	Format int
}

// Tenant returns the tenant of a target: its first token.
func Tenant(target string) string {
	first, _, _ := strings.Cut(target, ".")
	return first
}

// CheckTarget returns a problem if a subject is not allowed as a target. Every lane checks its messages again, so a
// narrower DELAY_TARGETS also applies to messages that were accepted before.
func (p Policy) CheckTarget(target string) *Problem {
	switch {
	case target == "":
		return Problemf(BadTarget, "no target: write the target after the delay, as in %s.30m.orders.expire",
			p.Names.Prefix())
	case len(target) > MaxTarget:
		return Problemf(BadTarget, "the target %s has %d bytes: at most %d", Excerpt(target), len(target), MaxTarget)
	}
	for i := range len(target) {
		switch c := target[i]; {
		case c <= ' ' || c >= 0x7f:
			return Problemf(BadTarget, "the target %s contains byte 0x%02x: use printable ASCII only", Excerpt(target), c)
		case c == '*' || c == '>':
			return Problemf(BadTarget, "the target %s contains a wildcard: name one subject", Excerpt(target))
		}
	}
	if target[0] == '.' || target[len(target)-1] == '.' || strings.Contains(target, "..") {
		return Problemf(BadTarget, "the target %s has an empty token", Excerpt(target))
	}
	if n := strings.Count(target, ".") + 1; n > maxTargetTokens {
		return Problemf(BadTarget, "the target %s has %d tokens: at most %d", Excerpt(target), n, maxTargetTokens)
	}
	first, _, _ := strings.Cut(target, ".")
	if first[0] == '$' || first[0] == '_' {
		return Problemf(BadTarget, "the target %s is in a namespace of the server: no message is delivered below $ or _",
			Excerpt(target))
	}
	if slices.Contains(p.Names.Roots(), first) {
		return Problemf(BadTarget,
			"the target %s is in a namespace of this broker: delays do not nest, so use the total delay", Excerpt(target))
	}
	if len(p.Targets) > 0 && !matchAny(p.Targets, target) {
		return Problemf(BadTarget, "the target %s is not among the targets this broker may deliver to (DELAY_TARGETS)",
			Excerpt(target))
	}
	return nil
}

func matchAny(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, subject) })
}

// SplitList splits a list of words that are separated by commas or spaces.
func SplitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Match reports whether subject matches a NATS pattern: * matches one token, and a final > matches one or more tokens.
func Match(pattern, subject string) bool {
	for {
		p, pRest, pMore := strings.Cut(pattern, ".")
		s, sRest, sMore := strings.Cut(subject, ".")
		if p == ">" && !pMore {
			return s != ""
		}
		if s == "" || p != "*" && p != s {
			return false
		}
		if !pMore || !sMore {
			return pMore == sMore
		}
		pattern, subject = pRest, sRest
	}
}

// FirstOverlap returns the first pattern that overlaps with one of others, or "".
func FirstOverlap(patterns, others []string) string {
	for _, pattern := range patterns {
		if slices.ContainsFunc(others, func(other string) bool { return Overlap(pattern, other) }) {
			return pattern
		}
	}
	return ""
}

// Overlap reports whether there is a subject that both patterns match.
func Overlap(a, b string) bool {
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		switch {
		case x == ">" || y == ">":
			return true
		case x != y && x != "*" && y != "*", moreA != moreB:
			return false
		case !moreA:
			return true
		}
		a, b = restA, restB
	}
}

// ValidPattern reports whether a pattern is valid for Match and for nats-server.
func ValidPattern(p string) bool {
	tokens := strings.Split(p, ".")
	for i, t := range tokens {
		if t == "" || strings.ContainsAny(t, " \t\r\n") {
			return false
		}
		if t != "*" && strings.Contains(t, "*") || strings.Contains(t, ">") && (t != ">" || i != len(tokens)-1) {
			return false
		}
	}
	return true
}
