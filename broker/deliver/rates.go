package deliver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// MaxRate is the largest rate, in messages per second. No target is faster, so a larger rate would limit nothing.
const MaxRate = 1_000_000

// Rates bounds how many messages a second each target gets. The first rule whose pattern matches applies. A target that
// no rule matches has no bound. The rate is that of one subject, so a flood for one subject delays no other subject of
// the same pattern.
type Rates []Rate

// Rate is a rule for the targets that match a pattern.
type Rate struct {
	Pattern   string
	PerSecond int
}

// ParseRates reads rules such as "shop.mail=50,reports.*=5".
func ParseRates(s string) (Rates, error) {
	var all Rates
	for _, word := range message.Words(s) {
		pattern, text, ok := strings.Cut(word, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("rate %q: want pattern=messages per second, as in shop.>=500", word)
		}
		all = append(all, Rate{Pattern: pattern, PerSecond: n})
	}
	return all, all.Validate()
}

// Validate returns an error that names every rate out of bounds.
func (r Rates) Validate() error {
	var all []error
	for _, rule := range r {
		if rule.PerSecond < 1 || rule.PerSecond > MaxRate {
			all = append(all, fmt.Errorf("rate %d for %s: 1 to %d messages per second",
				rule.PerSecond, rule.Pattern, MaxRate))
		}
	}
	return errors.Join(all...)
}

// interval returns the time between two messages for a target. It is zero if the target has no bound.
func (r Rates) interval(target string) time.Duration {
	for _, rule := range r {
		if message.Match(rule.Pattern, target) {
			return time.Second / time.Duration(rule.PerSecond)
		}
	}
	return 0
}
