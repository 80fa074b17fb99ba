package deliver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// MaxRate bounds a rate, in messages per second: beyond it there is nothing to limit.
const MaxRate = 1_000_000

// Rates bounds how many messages a second each target gets. The first rule whose pattern matches holds; a target that none
// matches is not bounded. The rate is that of one subject, so a flood for one delays no other of the same pattern.
type Rates []Rate

// Rate is the rule for the targets of a pattern.
type Rate struct {
	Pattern   string
	PerSecond int
}

// ParseRates reads rules as in "shop.mail=50,reports.*=5".
func ParseRates(s string) (Rates, error) {
	var all Rates
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		pattern, text, ok := strings.Cut(word, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("rate %q: want pattern=messages per second, as in shop.>=500", word)
		}
		all = append(all, Rate{Pattern: pattern, PerSecond: n})
	}
	return all, all.Validate()
}

// Validate reports rates out of bounds.
func (r Rates) Validate() error {
	var all []error
	for _, rule := range r {
		if rule.PerSecond < 1 || rule.PerSecond > MaxRate {
			all = append(all, fmt.Errorf("rate %d for %s: 1 to %d messages per second", rule.PerSecond, rule.Pattern, MaxRate))
		}
	}
	return errors.Join(all...)
}

// interval is the time between two messages for a target, zero when there is no bound.
func (r Rates) interval(target string) time.Duration {
	for _, rule := range r {
		if message.Match(rule.Pattern, target) {
			return time.Second / time.Duration(rule.PerSecond)
		}
	}
	return 0
}

// takeTurn reserves the next free moment of a target with a rate, which may be now. Reservations that others already hold are
// kept by the messages themselves, so a backlog neither waits in memory nor goes round in the retry lanes: each message is
// moved once, to where it waits for its turn. Reserved says that the message comes in its turn; it is counted only if this
// deliverer does not know of it, since it was restarted.
func (t *target) takeTurn(now time.Time, reserved bool) (at time.Time) {
	if t.free.Before(now) {
		t.free = now
	} else if reserved {
		return now
	}
	at = t.free
	t.free = at.Add(t.interval)
	return at
}
