package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

const (
	// tellPatience is how long the instances may take to confirm a new list. In this time the others notice one that has
	// died.
	tellPatience = 12 * time.Second
	// changeTries is how often a change of the list is tried while others change it.
	changeTries = 10
)

var (
	// ErrOlder is returned when a running instance knows nothing of pauses: it would deliver all the same.
	ErrOlder = errors.New("an older broker runs that knows nothing of pauses: upgrade it first")
	// ErrNotTold is returned when instances have not said that they act by the new list. The list itself is stored.
	ErrNotTold = errors.New("instances have not said that they act by it")
	// ErrNoPauses is returned where there is no stream for what is paused.
	ErrNoPauses = errors.New("there is no stream for what is paused: create it with delaybroker provision")
	// ErrUnopened is returned when the only list of pauses is sealed with a key that these settings do not have.
	ErrUnopened = errors.New("the list of what is paused is sealed with a secret that is not named here: set " +
		"DELAY_SECRET to what the brokers have; where nobody has it any more, a broker that starts holds these targets")
)

// Pause is a pattern of targets that are paused or being resumed.
type Pause struct {
	ID      string      `json:"id"`
	Pattern string      `json:"pattern"`
	State   pause.State `json:"state"`
	Since   time.Time   `json:"since"`             // when it was paused
	Waiting *uint64     `json:"waiting,omitempty"` // messages; nil if that was not asked
	// Unproven says that a broker took the pause from a list that it could not open.
	Unproven bool `json:"unproven,omitempty"`
}

// words say how far it is.
func (p Pause) words() string {
	if p.State == pause.Paused {
		return fmt.Sprintf("is paused since %s (%s)", text.Second(p.Since), p.Pattern)
	}
	return fmt.Sprintf("is being resumed (%s)", p.Pattern)
}

// PauseChange is what came of a change.
type PauseChange struct {
	Pauses []Pause  `json:"paused"`          // the list as it is now
	Told   []string `json:"told"`            // instances that act by it
	Untold []string `json:"untold"`          // instances that run, or may, and have not said so
	Stored string   `json:"error,omitempty"` // why it is not stored, although the instances act by it
}

// pauseStore is the record of what is paused. It knows the secrets after Learn.
func (i *Inspector) pauseStore() pause.Store {
	return pause.Store{Conn: i.Conn, API: i.api.API, Names: i.names, Keys: i.streams.Policy().Keys}
}

// Pauses are the targets that are paused, each with the number of messages that wait.
func (i *Inspector) Pauses(ctx context.Context) ([]Pause, error) {
	ctx, cancel := i.Allowed(ctx)
	defer cancel()
	if err := i.streams.ReadKeys(ctx, i.JetStream); err != nil {
		return nil, Cause(ctx, err)
	}
	read, err := i.pauseStore().Read(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, ErrNoPauses
	case err != nil:
		return nil, Cause(ctx, err)
	case len(read.Unopened.Present()) > 0:
		return nil, ErrUnopened
	}
	all := pausesOf(read.List)
	for at := range all {
		n, err := i.waiting(ctx, all[at].ID)
		if err != nil {
			return nil, Cause(ctx, fmt.Errorf("count what waits for %s: %w", all[at].Pattern, err))
		}
		all[at].Waiting = &n
	}
	return all, nil
}

func pausesOf(l *pause.List) []Pause {
	all := []Pause{}
	for _, p := range l.Present() {
		all = append(all, Pause{ID: p.ID, Pattern: p.Pattern, State: p.State, Since: p.Since, Unproven: p.Unproven})
	}
	return all
}

// waiting is how many messages wait for one pause.
func (i *Inspector) waiting(ctx context.Context, id string) (uint64, error) {
	scan := i.Headers(i.names.PausedStream(), "pauses")
	scan.Filters = []string{i.names.PauseFilter(id)}
	return scan.Count(ctx)
}

// Pause pauses the targets of a pattern. It returns when all instances that run have said that they act by it: from
// then on nothing is sent there.
func (i *Inspector) Pause(ctx context.Context, pattern string) (PauseChange, error) {
	return i.changePauses(ctx, true, func(l *pause.List) (*pause.List, error) { return l.Pause(pattern, time.Now()) })
}

// Resume resumes a pattern that was paused.
func (i *Inspector) Resume(ctx context.Context, pattern string) (PauseChange, error) {
	return i.changePauses(ctx, false, func(l *pause.List) (*pause.List, error) {
		next, err := l.Resume(pattern, time.Now())
		if errors.Is(err, pause.ErrNotPaused) {
			err = fmt.Errorf("%w; %s", err, others(l))
		}
		return next, err
	})
}

// others names what is paused, for whoever wants to resume something else.
func others(l *pause.List) string {
	var names []string
	for _, p := range l.Present() {
		names = append(names, p.Pattern)
	}
	if len(names) == 0 {
		return "nothing is"
	}
	return "patterns are resumed as they were paused, and there are: " + text.Few(names)
}

// changePauses changes the list and tells the instances. A change that stops deliveries must be stored, and all
// instances must know of pauses. Another one counts also where it cannot be stored: what waits may be what fills the
// account.
func (i *Inspector) changePauses(
	ctx context.Context, stops bool, change func(*pause.List) (*pause.List, error),
) (PauseChange, error) {
	ctx, cancel := i.Allowed(ctx)
	defer cancel()
	found, _, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err == nil {
		err = i.streams.Learn(found)
	}
	if err != nil {
		return PauseChange{}, Cause(ctx, err)
	}
	t := telling{Inspector: i, found: found, heard: make(map[string]bool), told: make(map[string]bool)}
	if err := t.round(ctx, nil); err != nil {
		return PauseChange{}, Cause(ctx, err)
	}
	if stops && len(t.older) > 0 {
		return PauseChange{}, fmt.Errorf("%w: %s", ErrOlder, text.Few(t.older))
	}
	next, refused, err := t.change(ctx, change)
	if err != nil && (stops || refused) || next == nil {
		return PauseChange{}, Cause(ctx, err)
	}
	result := PauseChange{Pauses: pausesOf(next), Told: []string{}, Untold: []string{}}
	if err != nil {
		result.Stored = err.Error()
	}
	if err := t.tell(ctx, next); err != nil {
		return result, Cause(ctx, err)
	}
	result.Told = slices.Sorted(maps.Keys(t.told))
	result.Untold = append(result.Untold, t.untold()...)
	if len(result.Untold) > 0 {
		return result, fmt.Errorf("%w: %s", ErrNotTold, text.Few(result.Untold))
	}
	return result, nil
}

// telling is the state of the round in which the instances are told of a list.
type telling struct {
	*Inspector
	found  []streams.Spec
	newest *pause.List     // that an instance knows
	heard  map[string]bool // instances that have answered
	told   map[string]bool // those that act by the list
	older  []string        // those that know of no pauses
	table  []string        // those that the table names
}

// change stores the next version of the list. Refused reports whether the error is about the change, and not about the
// stream.
func (t *telling) change(
	ctx context.Context, change func(*pause.List) (*pause.List, error),
) (next *pause.List, refused bool, err error) {
	store := t.pauseStore()
	for range changeTries {
		read, readErr := store.Read(ctx)
		present := t.newest
		if read.List != nil && (present == nil || read.List.Version > present.Version) {
			present = read.List
		}
		if present == nil && len(read.Unopened.Present()) > 0 {
			return nil, true, ErrUnopened // a new list would end these pauses
		}
		if next, err = change(present); err != nil {
			return nil, true, err
		}
		if err = readErr; err == nil {
			_, err = store.Write(ctx, next, read)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = ErrNoPauses
		}
		if !errors.Is(err, pause.ErrConflict) {
			return next, false, err
		}
	}
	return nil, true, err
}

// tell asks until all instances act by the list, or for as long as they may take.
func (t *telling) tell(ctx context.Context, l *pause.List) error {
	clear(t.told)
	for began := time.Now(); ; {
		if err := t.round(ctx, l); err != nil {
			return err
		}
		if len(t.untold()) == 0 || time.Since(began) > tellPatience {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askPause):
		}
	}
}

// round asks all instances once; with a list, it tells them of it.
func (t *telling) round(ctx context.Context, l *pause.List) error {
	answered := make(map[string]bool)
	table, err := t.Inspector.table(ctx, t.found)
	if err != nil {
		return err
	}
	t.table, t.older = slices.Sorted(maps.Keys(table.Instances)), nil
	send := func(reply string) error { return t.Conn.PublishRequest(t.names.StatusCall(), reply, nil) }
	if l != nil {
		send = func(reply string) error { return t.pauseStore().Announce(l, reply) }
	}
	err = t.askAll(ctx, send, func(m *nats.Msg, a stats.Answer) (more bool) {
		answered[a.Instance], t.heard[a.Instance] = true, true
		switch {
		case a.Pauses == nil:
			t.older = append(t.older, a.Instance)
		case !t.proven(m):
			return true
		case l == nil:
			if known := t.pauseStore().Open(a.Pauses.Record); known != nil &&
				(t.newest == nil || known.Version > t.newest.Version) {
				t.newest = known
			}
		case a.Pauses.Applied >= l.Version:
			t.told[a.Instance] = true
		}
		return l == nil || len(t.untold()) > 0
	})
	if len(t.table) > 0 { // the others know of those that have died
		maps.DeleteFunc(t.heard, func(id string, _ bool) bool { return !answered[id] && !slices.Contains(t.table, id) })
	}
	return err
}

// untold are the instances that run, or may, and have not said that they act by the list.
func (t *telling) untold() []string {
	all := slices.Concat(t.table, slices.Collect(maps.Keys(t.heard)))
	slices.SortFunc(all, strings.Compare)
	return slices.DeleteFunc(slices.Compact(all), func(id string) bool { return t.told[id] })
}
