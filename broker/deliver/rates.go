package deliver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// maxRate is the maximum of a rate, in messages per second. It is above the throughput of a broker.
const maxRate = 1_000_000

// Rates are maximum numbers of messages per second, by patterns of targets. The first rule that matches a target
// applies. [Limits] determines which messages share one rate.
type Rates message.Rules[int]

// ParseRates parses rules such as "shop.mail=50,reports.*=5".
func ParseRates(s string) (Rates, error) {
	rules, err := parseNumbers(s, "rate", "messages per second, as in shop.>=500")
	if err != nil {
		return nil, err
	}
	return Rates(rules), Rates(rules).Validate()
}

// Validate returns an error that names each rate that is less than 1 or more than maxRate, or nil.
func (r Rates) Validate() error {
	return validateNumbers(message.Rules[int](r), "rate", "messages per second", maxRate)
}

// parseNumbers parses rules of the form pattern=number. Want says in an error what the number means.
func parseNumbers(s, name, want string) (rules message.Rules[int], err error) {
	for _, word := range message.SplitList(s) {
		pattern, text, ok := strings.Cut(word, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s %q: want pattern=%s", name, word, want)
		}
		rules = append(rules, message.Rule[int]{Pattern: pattern, Value: n})
	}
	return rules, nil
}

// validateNumbers returns an error that names each rule whose number is not between 1 and most, or nil.
func validateNumbers(rules message.Rules[int], name, unit string, most int) error {
	var errs []error
	for _, rule := range rules {
		if rule.Value < 1 || rule.Value > most {
			errs = append(errs, fmt.Errorf("%s %d for %s: want 1 to %d %s", name, rule.Value, rule.Pattern, most, unit))
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
	bucket, perSecond := bucketOf(message.Rules[int](l.ByTarget), message.Rules[int](l.ByKey), target, key)
	if perSecond > 0 {
		interval = time.Second / time.Duration(perSecond)
	}
	return bucket, interval
}

// bucketOf returns the bucket of a message and the number of its rule, or the target and zero if no rule matches.
func bucketOf(byTarget, byKey message.Rules[int], target, key string) (bucket string, number int) {
	if key != "" {
		for _, r := range byKey {
			if message.Match(r.Pattern, target) {
				return r.Pattern + " " + key, r.Value // no target has a space
			}
		}
	}
	return target, byTarget.Lookup(target, 0)
}
