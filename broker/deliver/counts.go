package deliver

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"delaybroker/broker/message"
)

const (
	// maxNames is the maximum number of names that Counts adds to the names of NewCounts.
	maxNames = 256
	// maxPerToken is the maximum number of names with the same first token, such as shop, shop.mail and shop.mail.>
	// together. The second token may be an id.
	maxPerToken = 32
)

// everyTarget is the name of the count for deliveries that no other count includes.
const everyTarget = ">"

// Counts counts the outcomes of deliveries, by the names of targets. If a rate's pattern has three or more tokens, as
// in shop.mail.>, its targets are counted under the pattern. All other targets are counted under the first of these
// names for which there is room (see maxNames and maxPerToken):
//
//   - the target itself if it has one or two tokens, and otherwise the pattern of its first two tokens ("shop.mail.>")
//   - the pattern of the target's rate
//   - if the target has no rate, the pattern of its first token ("shop.>")
//   - if the target has no rate, ">"
//
// A name is never removed, so counts never fall. A Counts is safe for concurrent use.
type Counts struct {
	rules     message.Rules[*Count] // the counts of the patterns of rates; the rules do not change
	catchAll  *Count                // the count with the name everyTarget
	nameLimit int                   // maximum number of names
	counts    atomic.Pointer[[]*Count]

	mu       sync.Mutex // guards byName and perToken, and is held while counts is replaced
	byName   map[countName]*Count
	perToken map[string]int // the numbers that maxPerToken bounds, by first token
}

// countName is a name, and the pattern of a rate. Targets of one name may have different rates.
type countName struct{ name, rate string }

// Count counts the delivered and the refused messages for the targets with one name and one rate.
type Count struct {
	Target string // the name
	Rate   string // the pattern of DELAY_RATE that applies to these targets; empty for none

	delivered, refused atomic.Uint64
}

// NewCounts returns counts of zero, under the pattern of each rate and under ">".
func NewCounts(rates Rates) *Counts {
	cs := &Counts{byName: make(map[countName]*Count), perToken: make(map[string]int)}
	cs.counts.Store(new([]*Count))
	for _, rule := range rates {
		cs.rules = append(cs.rules, message.Rule[*Count]{
			Pattern: rule.Pattern, Value: cs.addLocked(countName{rule.Pattern, rule.Pattern}),
		})
	}
	cs.catchAll = cs.addLocked(countName{name: everyTarget})
	cs.nameLimit = len(cs.byName) + maxNames
	return cs
}

// All returns the counts, in the order in which they were added. It takes no lock.
func (cs *Counts) All() []*Count { return *cs.counts.Load() }

// Note counts the outcomes Delivered and Refused, and ignores all other outcomes. The nil Count counts nothing.
func (c *Count) Note(o Outcome) {
	switch {
	case c == nil:
	case o == Delivered:
		c.delivered.Add(1)
	case o == Refused:
		c.refused.Add(1)
	}
}

// Read returns the present numbers.
func (c *Count) Read() (delivered, refused uint64) { return c.delivered.Load(), c.refused.Load() }

func (cs *Counts) count(subject string) *Count {
	name, rule := countName{name: nameOf(subject)}, cs.rules.Lookup(subject, nil)
	if rule != nil {
		if strings.Count(rule.Target, ".") >= 2 {
			return rule // the pattern is at least as specific as nameOf
		}
		name.rate = rule.Rate
	}
	first, _, _ := strings.Cut(subject, ".")
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.ensureLocked(name, first); c != nil {
		return c
	}
	if rule != nil {
		return rule
	}
	if c := cs.ensureLocked(countName{name: first + ".>"}, ""); c != nil {
		return c
	}
	return cs.catchAll
}

// ensureLocked returns the count of a name. It adds a new name if there is room, and otherwise returns nil. First is
// the first token of the name, or empty if maxPerToken does not apply to the name.
func (cs *Counts) ensureLocked(n countName, first string) *Count {
	c := cs.byName[n]
	if c == nil && len(cs.byName) < cs.nameLimit && cs.perToken[first] < maxPerToken {
		if first != "" {
			cs.perToken[strings.Clone(first)]++
		}
		c = cs.addLocked(n)
	}
	return c
}

func (cs *Counts) addLocked(n countName) *Count {
	c := &Count{Target: strings.Clone(n.name), Rate: n.rate}
	cs.byName[countName{c.Target, c.Rate}] = c
	counts := append(slices.Clone(cs.All()), c) // callers of All may still read the old slice
	cs.counts.Store(&counts)
	return c
}

// nameOf returns a subject of one or two tokens, and otherwise the pattern of the subject's first two tokens.
func nameOf(subject string) string {
	first, rest, _ := strings.Cut(subject, ".")
	second, _, more := strings.Cut(rest, ".")
	if !more {
		return subject
	}
	return subject[:len(first)+1+len(second)] + ".>"
}
