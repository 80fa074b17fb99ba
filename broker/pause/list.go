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
	// over, it keeps the maxOver that ended last. They stay in the list so that the active instance still finds
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
	Closing  State = "closing"  // the active instance found the lane empty; instances hold due messages in memory
	Over     State = "over"     // due messages are sent to their target
	Open     State = "open"     // of quiet hours, outside of the hours: due messages are sent to their target
)

// Pause stops the targets of a pattern. Its lane holds their due messages.
type Pause struct {
	ID      string    `json:"id"` // the token of its lane's subjects; unique
	Pattern string    `json:"pattern"`
	State   State     `json:"state"`
	Since   time.Time `json:"since"`            // when it was last paused, by the writer's clock, for people
	Changed time.Time `json:"changed,omitzero"` // when its present state began, by the writer's clock, for people
	// Hours are the quiet hours of the pause. A pause without them lasts until it is resumed.
	Hours Hours `json:"hours,omitzero"`
	// Stored is the time at which the stream stored the list in which the present state began. In that list itself, it is
	// zero; Store.Read sets it. It is also zero in a list that was announced and not read.
	Stored time.Time `json:"stored,omitzero"`
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

// parse decodes a list.
func parse(data []byte) (*List, error) {
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

// Sends reports whether due messages are sent to the targets of the pause.
func (p Pause) Sends() bool { return p.State == Over || p.State == Open }

// Ended returns the state of a pause whose lane is empty.
func (p Pause) Ended() State {
	if p.Hours.IsZero() {
		return Over
	}
	return Open
}

// stateAt returns the state of a pause at a time: in quiet hours, the pause stops its targets, whatever is stored.
// After the hours, the lane drains. Until is the time until which this holds; it is zero without quiet hours.
func (p Pause) stateAt(now time.Time) (state State, until time.Time) {
	if p.Hours.IsZero() || p.Unproven {
		return p.State, time.Time{}
	}
	quiet, until := p.Hours.contains(now)
	switch {
	case quiet:
		return Paused, until
	case p.State == Paused:
		return Resuming, until
	}
	return p.State, until
}

// at returns the list with the states of the pauses at a time, and the time until which the result holds. Until is zero
// if no pause has quiet hours.
func (l *List) at(now time.Time) (applies *List, until time.Time) {
	applies = l
	for i, p := range l.All() {
		state, end := p.stateAt(now)
		if !end.IsZero() && (until.IsZero() || end.Before(until)) {
			until = end
		}
		if state == p.State {
			continue
		}
		if applies == l {
			applies = &List{Version: l.Version, Pauses: slices.Clone(l.Pauses)}
		}
		applies.Pauses[i].State = state
	}
	return applies, until
}

// Due returns the pauses whose quiet hours have begun or ended, in the states that they are to have, and the time of
// the next beginning or end. It is zero if no pause has quiet hours.
func (l *List) Due(now time.Time) (changed []Pause, next time.Time) {
	applies, next := l.at(now)
	for i, p := range applies.All() {
		if p.State != l.Pauses[i].State {
			changed = append(changed, p)
		}
	}
	return changed, next
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
		if !p.Sends() && i != ownIndex && (p.State == Paused || i > ownIndex) && message.Match(p.Pattern, target) {
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

// storedAt returns the list with the time at which it was stored for each pause whose state began in it.
func (l *List) storedAt(at time.Time) *List {
	stored := &List{Version: l.Version, Pauses: slices.Clone(l.Pauses)}
	for i := range stored.Pauses {
		if p := &stored.Pauses[i]; p.Stored.IsZero() {
			p.Stored = at.UTC()
		}
	}
	return stored
}

// Follows reports whether an instance with this list treats a pattern as the other list does. After a resumption, the
// active instance may have moved the pause on to a later state. A pattern that is not in the list is not paused.
func (l *List) Follows(other *List, pattern string) bool {
	has, _ := l.byPattern(pattern)
	wants, _ := other.byPattern(pattern)
	if has.Hours.String() != wants.Hours.String() {
		return false
	}
	if wants.State == Paused && wants.Hours.IsZero() {
		return has.State == Paused && has.ID == wants.ID
	}
	return has.State != Paused || !has.Hours.IsZero()
}

// byPattern returns the pause of a pattern that is not over.
func (l *List) byPattern(pattern string) (Pause, bool) {
	present := l.Present()
	if i := slices.IndexFunc(present, func(p Pause) bool { return p.Pattern == pattern }); i >= 0 {
		return present[i], true
	}
	return Pause{}, false
}

// Get returns the pause with an id.
func (l *List) Get(id string) (Pause, bool) {
	if i := slices.IndexFunc(l.All(), func(p Pause) bool { return p.ID == id }); i >= 0 {
		return l.Pauses[i], true
	}
	return Pause{}, false
}

// Pause returns the list with a pattern paused, in quiet hours if there are any. A pattern that is being resumed is
// paused again, in the same lane. A pattern that is paused gets the new quiet hours, or loses them.
func (l *List) Pause(pattern string, hours Hours, now time.Time) (*List, error) {
	p, known := l.byPattern(pattern)
	same := known && !p.Unproven && p.Hours.String() == hours.String()
	switch {
	case same && !hours.IsZero():
		return nil, fmt.Errorf("%w in the hours %s", ErrPaused, hours)
	case same && p.State == Paused:
		return nil, fmt.Errorf("%w since %s", ErrPaused, p.Since.UTC().Format(time.RFC3339))
	case known && p.State == Paused:
		return l.Set(p.ID, Paused, p.Since).withHours(p.ID, hours), nil // an unproven pause is confirmed
	case known && hours.IsZero():
		return l.Set(p.ID, Paused, now).withHours(p.ID, hours), nil
	case known:
		return l.Set(p.ID, p.State, now).withHours(p.ID, hours), nil
	}
	if n := len(l.Present()); n >= maxPauses {
		return nil, fmt.Errorf("%w: %d; resume one, or pause a wider pattern", errTooMany, n)
	}
	next := l.nextPruned(now)
	p = Pause{
		ID: strconv.FormatInt(next.Version, 36), Pattern: pattern, State: Paused, Since: now.UTC(), Changed: now.UTC(),
		Hours: hours,
	}
	if quiet, _ := hours.contains(now); !hours.IsZero() && !quiet {
		p.State = Open
	}
	next.Pauses = append(next.Pauses, p)
	return next, nil
}

// Resume returns the list with a pattern resumed, and without its quiet hours. The pattern must equal the paused
// pattern: the lane of a pause is read from its start, so a part of the pattern cannot be resumed.
func (l *List) Resume(pattern string, now time.Time) (*List, error) {
	p, known := l.byPattern(pattern)
	state := p.State
	switch {
	case !known:
		return nil, ErrNotPaused
	case state == Paused:
		state = Resuming
	case state == Open:
		state = Over
	case p.Hours.IsZero():
		return nil, fmt.Errorf("%w since %s", errResuming, p.Changed.UTC().Format(time.RFC3339))
	}
	return l.Set(p.ID, state, now).withHours(p.ID, Hours{}), nil
}

// withHours sets the quiet hours of a pause in a list that nobody else has yet.
func (l *List) withHours(id string, hours Hours) *List {
	for i := range l.Pauses {
		if l.Pauses[i].ID == id {
			l.Pauses[i].Hours = hours
		}
	}
	return l
}

// Set returns the list with one pause in another state.
func (l *List) Set(id string, state State, now time.Time) *List {
	next := l.nextPruned(now)
	for i := range next.Pauses {
		if p := &next.Pauses[i]; p.ID == id {
			if state == Paused {
				p.Since = now.UTC()
			}
			p.State, p.Changed, p.Stored, p.Unproven = state, now.UTC(), time.Time{}, false
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
