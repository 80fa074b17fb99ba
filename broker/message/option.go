package message

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// readOptions parses the delivery options of a client's request.
func (p Policy) readOptions(r Request, b Block) (Request, *Problem) {
	if len(b.Delay) == 0 {
		return r, nil
	}
	rec := &record{Request: r} // on the heap
	for _, row := range optionRows {
		if b.Delay[row.name] == nil {
			continue
		}
		value, problem := b.Value(row.name)
		if problem == nil {
			problem = row.parse(p, &rec.Request, value)
		}
		if problem != nil {
			return rec.Request, problem
		}
	}
	return rec.Request, nil
}

// withOptions returns the request with those of the named options that another request has.
func (r Request) withOptions(from Request, names ...string) Request {
	to, source := &record{Request: r}, &record{Request: from}
	for _, row := range optionRows {
		if slices.Contains(names, row.name) {
			reflect.ValueOf(row.field(to)).Elem().Set(reflect.ValueOf(row.field(source)).Elem())
		}
	}
	return to.Request
}

func parseMode(_ Policy, r *Request, value string) *Problem {
	mode := Mode(strings.ToLower(value))
	if mode != "" && !slices.Contains(Modes(), mode) {
		return Problemf(BadOption, "Delay-Deliver %s: want auto, stream, core or request", Excerpt(value))
	}
	r.Mode = mode
	return nil
}

func parseExpires(_ Policy, r *Request, value string) *Problem {
	if value == "" {
		return nil
	}
	if d, err := levels.ParseDuration(value); err == nil {
		r.Expires = r.Due.Add(d)
	} else {
		t, problem := ParseTime(value)
		if problem != nil {
			return Problemf(BadOption,
				"Delay-Expires %s: want a duration after the due time (10m) or a time (RFC 3339 or unix milliseconds)",
				Excerpt(value))
		}
		r.Expires = t
	}
	switch {
	case r.Expires.Before(r.Due):
		return Problemf(BadOption, "Delay-Expires %s is before the due time: the message could never be delivered",
			Excerpt(value))
	case !writable(r.Expires):
		return Problemf(BadOption, "Delay-Expires %s is after the year 9999: leave it out", Excerpt(value))
	}
	return nil
}

func expiresText(r Request) string {
	if r.Expires.IsZero() {
		return ""
	}
	return levels.FormatDuration(r.Expires.Sub(r.Due))
}

func ttlText(r Request) string {
	if r.TTL == "" || r.TTL == "never" {
		return r.TTL
	}
	return r.TTL + "s"
}

func parseRateKey(_ Policy, r *Request, value string) *Problem {
	if r.RateKey = value; !validRateKey(value) {
		return Problemf(BadOption, "Delay-Rate-Key %s: want 1 to %d bytes of printable ASCII without spaces",
			Excerpt(value), maxRateKey)
	}
	return nil
}

const maxRateKey = 64 // bytes

func validRateKey(key string) bool {
	return key != "" && len(key) <= maxRateKey &&
		!strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
}

// MaxTTL is the maximum Nats-TTL at a target. With a value some three times as large, a duration in nats-server would
// overflow, and the message would expire immediately.
const MaxTTL = 36500 * 24 * time.Hour

// parseTTL converts a duration to a Nats-TTL for nats-server: whole seconds, rounded up. An empty TTL and "never" stay
// unchanged.
func parseTTL(_ Policy, r *Request, ttl string) *Problem {
	if r.TTL = ttl; ttl == "" || ttl == "never" {
		return nil
	}
	d, err := levels.ParseDuration(ttl)
	if err != nil || d < time.Second || d > MaxTTL {
		r.TTL = ""
		return Problemf(BadOption, "Delay-TTL %s: want a duration from 1s to %s, or never", Excerpt(ttl),
			levels.FormatDuration(MaxTTL))
	}
	r.TTL = strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
	return nil
}

// validTTL reports whether a TTL has the form of a result of parseTTL.
func validTTL(ttl string) bool {
	return ttl == "never" || len(ttl) <= len("3153600000") && strings.Trim(ttl, "0123456789") == ""
}

// parseMaxAttempts parses the client's limit of refusals, which must not exceed the limit in the settings for the
// target. Without a target, the limit is not known yet: an operator may resend the dead letter to another target.
func parseMaxAttempts(p Policy, r *Request, value string) *Problem {
	if r.MaxAttempts = 0; value == "" || r.Target == "" {
		return nil
	}
	limit := math.MaxInt32
	if p.Attempts != nil {
		limit = p.Attempts(r.Target)
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > limit {
		return Problemf(BadOption,
			"Delay-Max-Attempts %s: want a whole number from 1 to %d, the maximum for this target (DELAY_ATTEMPTS)",
			Excerpt(value), limit)
	}
	r.MaxAttempts = n
	return nil
}
