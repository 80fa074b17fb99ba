package deliver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// MaxRate is the maximum of a rate, in messages per second. It is above the throughput of a broker.
const MaxRate = 1_000_000

// Rates are maximum numbers of messages per second, by patterns of targets. The first rule that matches a target
// applies. [Limits] determines which messages share one rate.
type Rates message.Rules[int]

// ParseRates parses rules such as "shop.mail=50,reports.*=5".
func ParseRates(s string) (Rates, error) {
	var rates Rates
	for _, word := range message.SplitList(s) {
		pattern, text, ok := strings.Cut(word, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("rate %q: want pattern=messages per second, as in shop.>=500", word)
		}
		rates = append(rates, message.Rule[int]{Pattern: pattern, Value: n})
	}
	return rates, rates.Validate()
}

// Validate returns an error that names each rate that is less than 1 or more than MaxRate, or nil.
func (r Rates) Validate() error {
	var errs []error
	for _, rule := range r {
		if rule.Value < 1 || rule.Value > MaxRate {
			errs = append(errs, fmt.Errorf("rate %d for %s: want 1 to %d messages per second",
				rule.Value, rule.Pattern, MaxRate))
		}
	}
	return errors.Join(errs...)
}

// Limits bound the messages per second. A bucket is a set of messages that share one rate. If a message has a
// Delay-Rate-Key, and its target matches a rule of ByKey, the message is in the bucket of that rule and key. Any other
// message is in the bucket of its target, so a flood for one target of a pattern delays no other target of the pattern.
type Limits struct {
	ByTarget Rates
	ByKey    Rates
}

// Bucket returns the bucket of a message, and the interval between two messages of the bucket. The interval is zero if
// no rule matches: then the bucket has no rate.
func (l Limits) Bucket(target, key string) (bucket string, interval time.Duration) {
	if key != "" {
		for _, r := range l.ByKey {
			if message.Match(r.Pattern, target) {
				return r.Pattern + " " + key, time.Second / time.Duration(r.Value) // no target has a space
			}
		}
	}
	if perSecond := message.Rules[int](l.ByTarget).Lookup(target, 0); perSecond > 0 {
		interval = time.Second / time.Duration(perSecond)
	}
	return target, interval
}
