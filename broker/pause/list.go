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
	// maxPauses is the maximum number of pauses that are not over, because each due message is compared with every
	// pattern.
	maxPauses = 64
	// A change of the list removes each pause that has been over for more than keepOver. Of the other pauses that are
	// over, it keeps the maxOver that ended last. They stay in the list so that the owner of the lanes still finds
	// messages that an instance with an older list has parked.
	keepOver = time.Hour
	maxOver  = 32
)

// State is the state of a pause.
type State string

// The states, in their usual order: see the package documentation.
const (
	Paused   State = "paused"
	Resuming State = "resuming" // the lane drains, and due messages still join its end
	Closing  State = "closing"  // the owner found the lane empty; instances hold due messages in memory
	Over     State = "over"     // due messages are sent to their target
)

// Pause stops the targets of a pattern. Its lane holds their due messages.
type Pause struct {
	ID      string    `json:"id"` // the token of its lane's subjects; unique
	Pattern string    `json:"pattern"`
	State   State     `json:"state"`
	Since   time.Time `json:"since"`            // when it was last paused
	Changed time.Time `json:"changed,omitzero"` // when its present state began
	// Unproven is true if the pause comes from a list that a starting instance could not open. A client may have forged
	// that list.
	Unproven bool `json:"unproven,omitempty"`
}

// List is one version of the list of pauses. The nil List is empty.
type List struct {
	// Version rises with each change. A change makes it at least the writer's time in unix nanoseconds, so that a list
	// that an operator makes after a loss of the record is still newer than the list that any instance remembers.
	Version int64   `json:"version"`
	Pauses  []Pause `json:"pauses"`
}

// Parse decodes a list.
func Parse(data []byte) (*List, error) {
	l := new(List)
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("read the list of pauses: %w", err)
	}
	if l.Version < 1 {
		return nil, fmt.Errorf("read the list of pauses: version %d is invalid", l.Version)
	}
	for _, p := range l.Pauses {
		if !message.ValidPattern(p.Pattern) || p.ID == "" {
			return nil, fmt.Errorf("read the list of pauses: %+v is not a pause", p)
		}
	}
	return l, nil
}

// encode returns the body of the record.
func (l *List) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic("bug: encode the list of pauses: " + err.Error())
	}
	return data
}

// All returns all pauses, including those that are over.
func (l *List) All() []Pause {
	if l == nil {
		return nil
	}
	return l.Pauses
}

// Present returns the pauses that are not over.
func (l *List) Present() []Pause {
	return slices.DeleteFunc(slices.Clone(l.All()), func(p Pause) bool { return p.State == Over })
}

// Patterns returns the patterns of the pauses that are not over.
func (l *List) Patterns() (patterns []string) {
	for _, p := range l.Present() {
		patterns = append(patterns, p.Pattern)
	}
	return patterns
}

// PauseOf returns the oldest pause that matches a target, and its state, or Over if no pause matches. So all due
// messages for a target join the same lane, in the order of their due times, even if patterns overlap.
//
// OwnID is the id of the pause in whose lane the message has waited, or empty. PauseOf ignores this pause, and older
// pauses that are being resumed, because the messages in the lanes of those pauses were due later. Otherwise messages
// of pauses that are resumed together could move from one lane to another and back.
func (l *List) PauseOf(target, ownID string) (id string, state State) {
	ownIndex := slices.IndexFunc(l.All(), func(p Pause) bool { return p.ID == ownID })
	for i, p := range l.All() {
		if p.State != Over && i != ownIndex && (p.State == Paused || i > ownIndex) && message.Match(p.Pattern, target) {
			return p.ID, p.State
		}
	}
	return "", Over
}

// Stops reports whether a pause in the state Paused matches a target. Then no message may be sent to the target.
func (l *List) Stops(target string) bool {
	return slices.ContainsFunc(l.All(), func(p Pause) bool {
		return p.State == Paused && message.Match(p.Pattern, target)
	})
}

// merge returns the list with the pauses of another list that are not over, at most maxPauses in all. It leaves out
// pauses with an invalid id.
func (l *List) merge(other *List) *List {
	if other == nil {
		return l
	}
	merged := &List{Version: 1, Pauses: slices.Clone(l.All())}
	for _, p := range other.Present() {
		if _, known := merged.Get(p.ID); !known && validID(p.ID) && len(merged.Pauses) < maxPauses {
			merged.Pauses = append(merged.Pauses, p)
		}
	}
	return merged
}

// validID reports whether List.Pause could have made an id, which is used as a token of subjects.
func validID(id string) bool {
	version, err := strconv.ParseInt(id, 36, 64)
	return err == nil && version > 0 && strconv.FormatInt(version, 36) == id
}

// pauseAll returns the list with each pause paused and unproven. The caller could not open the list.
func (l *List) pauseAll(now time.Time) *List {
	paused := &List{Version: now.UnixNano(), Pauses: slices.Clone(l.Pauses)}
	for i := range paused.Pauses {
		paused.Pauses[i].State, paused.Pauses[i].Unproven = Paused, true
	}
	return paused
}

// nextVersion returns the same list in its next version.
func (l *List) nextVersion() *List {
	return &List{Version: l.Version + 1, Pauses: slices.Clone(l.Pauses)}
}

// Get returns the pause with an id.
func (l *List) Get(id string) (Pause, bool) {
	if i := slices.IndexFunc(l.All(), func(p Pause) bool { return p.ID == id }); i >= 0 {
		return l.Pauses[i], true
	}
	return Pause{}, false
}

// Pause returns the list with a pattern paused. A pattern that is being resumed is paused again, in the same lane.
func (l *List) Pause(pattern string, now time.Time) (*List, error) {
	for _, p := range l.Present() {
		switch {
		case p.Pattern != pattern:
		case p.State == Paused && p.Unproven:
			return l.Set(p.ID, Paused, p.Since), nil // the operator confirms the unproven pause
		case p.State == Paused:
			return nil, fmt.Errorf("%w since %s", ErrPaused, p.Since.UTC().Format(time.RFC3339))
		default:
			return l.Set(p.ID, Paused, now), nil
		}
	}
	if n := len(l.Present()); n >= maxPauses {
		return nil, fmt.Errorf("%w: %d; resume one, or pause a wider pattern", ErrTooMany, n)
	}
	next := l.nextPruned(now)
	next.Pauses = append(next.Pauses, Pause{
		ID: strconv.FormatInt(next.Version, 36), Pattern: pattern, State: Paused, Since: now.UTC(), Changed: now.UTC(),
	})
	return next, nil
}

// Resume returns the list with a pattern resumed. The pattern must equal the paused pattern: the lane of a pause is
// read from its start, so a part of the pattern cannot be resumed.
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

// Set returns the list with one pause in another state.
func (l *List) Set(id string, state State, now time.Time) *List {
	next := l.nextPruned(now)
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

// nextPruned returns a copy of the list in its next version, without the pauses that ended more than keepOver ago, and
// with at most maxOver pauses that are over.
func (l *List) nextPruned(now time.Time) *List {
	pruned := &List{Version: now.UnixNano()}
	if l == nil {
		return pruned
	}
	pruned.Version = max(pruned.Version, l.Version+1)
	var ended []Pause // the pause that ended last comes first
	for _, p := range l.Pauses {
		if p.State == Over {
			ended = append(ended, p)
		}
	}
	slices.SortStableFunc(ended, func(a, b Pause) int { return b.Changed.Compare(a.Changed) })
	ended = ended[:min(len(ended), maxOver)]
	for _, p := range l.Pauses {
		if p.State == Over && (now.Sub(p.Changed) > keepOver || !slices.Contains(ended, p)) {
			continue
		}
		pruned.Pauses = append(pruned.Pauses, p)
	}
	return pruned
}
