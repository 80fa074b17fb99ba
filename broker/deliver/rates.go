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

// Rates bounds how many messages a second each target gets. A target that no rule matches has no bound. The rate is
// that of one subject, so a flood for one subject delays no other subject of the same pattern.
type Rates message.Rules[int]

// ParseRates reads rules such as "shop.mail=50,reports.*=5".
func ParseRates(s string) (Rates, error) {
	var all Rates
	for _, word := range message.Words(s) {
		pattern, text, ok := strings.Cut(word, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("rate %q: want pattern=messages per second, as in shop.>=500", word)
		}
		all = append(all, message.Rule[int]{Pattern: pattern, Value: n})
	}
	return all, all.Validate()
}

// Validate returns an error that names every rate out of bounds.
func (r Rates) Validate() error {
	var all []error
	for _, rule := range r {
		if rule.Value < 1 || rule.Value > MaxRate {
			all = append(all, fmt.Errorf("rate %d for %s: 1 to %d messages per second",
				rule.Value, rule.Pattern, MaxRate))
		}
	}
	return errors.Join(all...)
}

// interval returns the time between two messages for a target. It is zero if the target has no bound.
func (r Rates) interval(target string) time.Duration {
	perSecond := message.Rules[int](r).For(target, 0)
	if perSecond == 0 {
		return 0
	}
	return time.Second / time.Duration(perSecond)
}
