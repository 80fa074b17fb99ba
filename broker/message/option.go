package message

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// options parses Delay-Deliver, Delay-Expires, Delay-TTL and Delay-Rate-Key.
func (r Request) options(b Block) (Request, *Problem) {
	deliver, problem := b.Value(HeaderDeliver)
	if problem != nil {
		return r, problem
	}
	mode := Mode(strings.ToLower(deliver))
	if mode != "" && !slices.Contains(Modes(), mode) {
		return r, Problemf(BadOption, "Delay-Deliver %s: want auto, stream, core or request", Excerpt(deliver))
	}
	r.Mode = mode
	expires, problem := b.Value(HeaderExpires)
	if problem != nil {
		return r, problem
	}
	if expires != "" {
		if d, err := levels.ParseDuration(expires); err == nil {
			r.Expires = r.Due.Add(d)
		} else if r.Expires, problem = ParseTime(expires); problem != nil {
			return r, Problemf(BadOption,
				"Delay-Expires %s: want a duration after the due time (10m) or a time (RFC 3339 or unix milliseconds)",
				Excerpt(expires))
		}
		switch {
		case r.Expires.Before(r.Due):
			return r, Problemf(BadOption, "Delay-Expires %s is before the due time: the message could never be delivered",
				Excerpt(expires))
		case !writable(r.Expires):
			return r, Problemf(BadOption, "Delay-Expires %s is after the year 9999: leave it out", Excerpt(expires))
		}
	}
	ttl, problem := b.Value(HeaderTTL)
	if problem != nil {
		return r, problem
	}
	if r.TTL, problem = parseTTL(ttl); problem != nil {
		return r, problem
	}
	r.RateKey, problem = b.Value(HeaderRateKey)
	if problem == nil && b.Delay[HeaderRateKey] != nil && !validRateKey(r.RateKey) {
		problem = Problemf(BadOption, "Delay-Rate-Key %s: want 1 to %d bytes of printable ASCII without spaces",
			Excerpt(r.RateKey), maxRateKey)
	}
	return r, problem
}

const maxRateKey = 64 // bytes

func validRateKey(key string) bool {
	return key != "" && len(key) <= maxRateKey &&
		!strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
}

// MaxTTL is the maximum Nats-TTL at a target. With a value some three times as large, a duration in nats-server would
// overflow, and the message would expire immediately.
const MaxTTL = 36500 * 24 * time.Hour

// parseTTL converts a duration to a Nats-TTL for nats-server: whole seconds, rounded up. It returns an empty TTL and
// "never" unchanged.
func parseTTL(ttl string) (string, *Problem) {
	if ttl == "" || ttl == "never" {
		return ttl, nil
	}
	d, err := levels.ParseDuration(ttl)
	if err != nil || d < time.Second || d > MaxTTL {
		return "", Problemf(BadOption, "Delay-TTL %s: want a duration from 1s to %s, or never", Excerpt(ttl),
			levels.FormatDuration(MaxTTL))
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10), nil
}

// validTTL reports whether a TTL has the form of a result of parseTTL.
func validTTL(ttl string) bool {
	return ttl == "never" || len(ttl) <= len("3153600000") && strings.Trim(ttl, "0123456789") == ""
}

// maxAttempts returns the client's limit of refusals, or zero if the client has set none. The limit must not exceed the
// limit in the settings for the target.
func (p Policy) maxAttempts(target string, b Block) (int, *Problem) {
	value, problem := b.Value(HeaderMaxAttempts)
	if problem != nil || value == "" {
		return 0, problem
	}
	limit := math.MaxInt32
	if p.Attempts != nil {
		limit = p.Attempts(target)
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > limit {
		return 0, Problemf(BadOption,
			"Delay-Max-Attempts %s: want a whole number from 1 to %d, the maximum for this target (DELAY_ATTEMPTS)",
			Excerpt(value), limit)
	}
	return n, nil
}
