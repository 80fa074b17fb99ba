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

// paceLocked gives a message a turn at its target's rate. It reports whether that is not now, and with what result.
func (d *Deliverer) paceLocked(t *target, m Message) (r Result, later bool) {
	if t.interval == 0 || m.Paced == d.pacer {
		return Result{}, false
	}
	now := time.Now()
	turn := t.nextTurn(now)
	if !m.Expires.IsZero() && turn.After(m.Expires) {
		return Result{Outcome: Expired}, true // and takes none
	}
	t.free = turn.Add(t.interval)
	return Result{Outcome: Paced, Turn: turn, Pacer: d.pacer}, turn.After(now)
}

// nextTurn is the next free moment of a target with a rate, which may be now. A message that has to wait for its turn is
// moved once, to where it waits, so a backlog neither stays in memory nor goes round in the retry lanes. The message keeps
// the turn, and comes again with the name of who gave it. A turn that another deliverer gave, of another instance or before
// a restart, is none: this one does not know what else was promised.
func (t *target) nextTurn(now time.Time) time.Time {
	if t.free.Before(now) {
		return now
	}
	return t.free
}
