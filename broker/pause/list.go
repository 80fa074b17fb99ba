package pause

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"delaybroker/broker/message"
)

const (
	// most bounds the list: every message that is due is compared with each pattern.
	most = 64
	// keepOver is how long the list names a pause that is over, so that what an instance still put into its lane, not
	// knowing better, is found; and mostOver is how many of them.
	keepOver = time.Hour
	mostOver = 32
)

// State is how far a pause is.
type State string

// The states, in their order. A pause that is resuming may be paused again.
const (
	Paused   State = "paused"
	Resuming State = "resuming" // what waits goes out, and what becomes due still joins its end
	Closing  State = "closing"  // nothing joins: what becomes due is held for a moment, until what waited is out
	Over     State = "over"     // what becomes due goes to its target
)

// Pause is the targets of one pattern, and the lane in which what is due for them waits.
type Pause struct {
	ID      string    `json:"id"` // the token of its lane's subjects; never used again
	Pattern string    `json:"pattern"`
	State   State     `json:"state"`
	Since   time.Time `json:"since"`            // when it was paused
	Changed time.Time `json:"changed,omitzero"` // when its present state began
	// Unproven says that the pause was taken from a list that nobody here could open. Somebody else may have written it.
	Unproven bool `json:"unproven,omitempty"`
}

// List is all pauses, as one of the versions of the record says. The nil List is empty.
type List struct {
	// Version rises with each change, and is at least the writer's time in nanoseconds: a list that was begun anew, when
	// the record was lost, is still newer than what an instance remembers.
	Version int64   `json:"version"`
	Pauses  []Pause `json:"pauses"`
}

// Parse reads a record.
func Parse(data []byte) (*List, error) {
	l := new(List)
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("read the list of pauses: %w", err)
	}
	if l.Version < 1 {
		return nil, fmt.Errorf("read the list of pauses: version %d is none", l.Version)
	}
	for _, p := range l.Pauses {
		if !message.ValidPattern(p.Pattern) || p.ID == "" {
			return nil, fmt.Errorf("read the list of pauses: %+v is none", p)
		}
	}
	return l, nil
}

// encode is the record.
func (l *List) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic("bug: encode the list of pauses: " + err.Error())
	}
	return data
}

// All are the pauses, also those that are over.
func (l *List) All() []Pause {
	if l == nil {
		return nil
	}
	return l.Pauses
}

// Present are the pauses that are not over.
func (l *List) Present() []Pause {
	if l == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.Pauses), func(p Pause) bool { return p.State == Over })
}

// Of is the pause for which what is due for a target waits, and its state, or Over if there is none: the oldest whose
// pattern matches. So all that waits for a target is in one lane, in the order in which it became due, also where
// patterns overlap. Own is the pause in whose lane the message waited, if it did; that one is over for it. So are the
// older ones that are resumed: what waits there became due later. If it waited there again, what is resumed together
// could go from one lane to the other and back, behind what was due later.
func (l *List) Of(target, own string) (id string, state State) {
	if l == nil {
		return "", Over
	}
	released := slices.IndexFunc(l.Pauses, func(p Pause) bool { return p.ID == own })
	for i, p := range l.Pauses {
		if p.State != Over && i != released && (p.State == Paused || i > released) && message.Match(p.Pattern, target) {
			return p.ID, p.State
		}
	}
	return "", Over
}

// Stops reports whether nothing may be sent to a target: a pause that is not resumed matches it.
func (l *List) Stops(target string) bool {
	if l == nil {
		return false
	}
	return slices.ContainsFunc(l.Pauses, func(p Pause) bool {
		return p.State == Paused && message.Match(p.Pattern, target)
	})
}

// with is the list and the pauses of another one that are not over, as far as there is room.
func (l *List) with(other *List) *List {
	if other == nil {
		return l
	}
	all := &List{Version: 1, Pauses: slices.Clone(l.All())}
	for _, p := range other.Present() {
		known := slices.ContainsFunc(all.Pauses, func(has Pause) bool { return has.ID == p.ID })
		if !known && validID(p.ID) && len(all.Pauses) < most {
			all.Pauses = append(all.Pauses, p)
		}
	}
	return all
}

// validID reports whether an id can be one of next: it becomes a token of subjects.
func validID(id string) bool {
	version, err := strconv.ParseInt(id, 36, 64)
	return err == nil && version > 0 && strconv.FormatInt(version, 36) == id
}

// held is the list with everything paused, for a list that nobody here could open.
func (l *List) held(now time.Time) *List {
	held := &List{Version: now.UnixNano(), Pauses: slices.Clone(l.Pauses)}
	for i := range held.Pauses {
		held.Pauses[i].State, held.Pauses[i].Unproven = Paused, true
	}
	return held
}

// again is the same list in its next version.
func (l *List) again() *List { return &List{Version: l.Version + 1, Pauses: slices.Clone(l.Pauses)} }

// Get is the pause with an id.
func (l *List) Get(id string) (Pause, bool) {
	if l == nil {
		return Pause{}, false
	}
	i := slices.IndexFunc(l.Pauses, func(p Pause) bool { return p.ID == id })
	if i < 0 {
		return Pause{}, false
	}
	return l.Pauses[i], true
}

// Pause is the list with a pattern paused. A pattern that is being resumed is paused again, in the same lane.
func (l *List) Pause(pattern string, now time.Time) (*List, error) {
	for _, p := range l.Present() {
		switch {
		case p.Pattern != pattern:
		case p.State == Paused && p.Unproven:
			return l.Set(p.ID, Paused, p.Since), nil // now an operator says so
		case p.State == Paused:
			return nil, fmt.Errorf("%w since %s", ErrPaused, p.Since.UTC().Format(time.RFC3339))
		default:
			return l.Set(p.ID, Paused, now), nil
		}
	}
	if n := len(l.Present()); n >= most {
		return nil, fmt.Errorf("%w: %d patterns are; resume one, or pause a wider pattern", ErrTooMany, n)
	}
	next := l.next(now)
	next.Pauses = append(next.Pauses, Pause{
		ID: strconv.FormatInt(next.Version, 36), Pattern: pattern, State: Paused, Since: now.UTC(), Changed: now.UTC(),
	})
	return next, nil
}

// Resume is the list with a pattern resumed: one that was paused as it is written here. What waits for a pattern has no
// other order than its own, so a part of it cannot be resumed.
func (l *List) Resume(pattern string, now time.Time) (*List, error) {
	for _, p := range l.Present() {
		if p.Pattern != pattern {
			continue
		}
		if p.State != Paused {
			return nil, fmt.Errorf("%w since %s", ErrResuming, p.Changed.UTC().Format(time.RFC3339))
		}
		return l.Set(p.ID, Resuming, now), nil
	}
	return nil, ErrNotPaused
}

// Set is the list with one pause in another state.
func (l *List) Set(id string, state State, now time.Time) *List {
	next := l.next(now)
	for i := range next.Pauses {
		if p := &next.Pauses[i]; p.ID == id {
			if state == Paused {
				p.Since = now.UTC()
			}
			p.State, p.Changed, p.Unproven = state, now.UTC(), false
		}
	}
	return next
}

// next is a copy of the list in its next version, without what was over long ago.
func (l *List) next(now time.Time) *List {
	next := &List{Version: now.UnixNano()}
	if l == nil {
		return next
	}
	next.Version = max(next.Version, l.Version+1)
	var ended []Pause // the last first
	for _, p := range l.Pauses {
		if p.State == Over {
			ended = append(ended, p)
		}
	}
	slices.SortStableFunc(ended, func(a, b Pause) int { return b.Changed.Compare(a.Changed) })
	ended = ended[:min(len(ended), mostOver)]
	for _, p := range l.Pauses {
		if p.State == Over && (now.Sub(p.Changed) > keepOver || !slices.Contains(ended, p)) {
			continue
		}
		next.Pauses = append(next.Pauses, p)
	}
	return next
}
