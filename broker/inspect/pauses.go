package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/pause"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

const (
	// confirmTimeout is the timeout for the instances' confirmations of a new list. Within this time, the other
	// instances detect the death of an instance.
	confirmTimeout = 12 * time.Second
	// maxChanges is the maximum number of attempts to change the list while other clients change it.
	maxChanges = 10
)

var (
	// ErrPausesUnsupported is returned if a running instance does not support pauses. Such an instance would deliver to
	// paused targets.
	ErrPausesUnsupported = errors.New("a running broker is too old for pauses: upgrade it first")
	// ErrUnconfirmed is returned if instances have not confirmed the new list in time. The list itself is stored.
	ErrUnconfirmed = errors.New("instances have not confirmed the change")
	// ErrNoPauses is returned if the stream of the paused messages is missing.
	ErrNoPauses = errors.New("the stream of the paused messages is missing: create it with delaybroker provision")
	// ErrUnopened is returned if the only list of pauses is sealed with a secret that is missing in these settings.
	ErrUnopened = errors.New("the list of paused targets is sealed with a secret that is not set here: set " +
		"DELAY_SECRET to the brokers' value; if the secret is lost, restart a broker: it keeps these targets paused")
)

// Pause is a pattern of targets that are paused or being resumed.
type Pause struct {
	pause.Pause
	Waiting *uint64 `json:"waiting,omitempty"` // messages; nil if they were not counted
}

// predicate returns the state of the pause as text. The subject of the sentence is a target.
func (p Pause) predicate() string {
	if p.State == pause.Paused {
		return fmt.Sprintf("is paused since %s (%s)", text.Second(p.Since), p.Pattern)
	}
	return fmt.Sprintf("is being resumed (%s)", p.Pattern)
}

// PauseChange is the result of a change.
type PauseChange struct {
	Pauses      []Pause  `json:"paused"`          // the current list
	Confirmed   []string `json:"told"`            // instances that confirmed the list
	Unconfirmed []string `json:"untold"`          // instances that may run, and have not confirmed the list
	NotStored   string   `json:"error,omitempty"` // why the list is not stored; the instances still follow it
}

// pauseStore returns the store of the list of pauses. After a call of ReadKeys, the store has the secrets of the
// streams.
func (i *Inspector) pauseStore() pause.Store {
	return pause.Store{Conn: i.Conn, API: i.api.API, Names: i.names, Keys: i.streams.Policy().Keys}
}

// Pauses returns the pauses, each with the number of its waiting messages.
func (i *Inspector) Pauses(ctx context.Context) ([]Pause, error) {
	ctx, cancel := i.WithRefusal(ctx)
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
		scan := i.ScanHeaders(i.names.PausedStream(), "pauses")
		scan.Filters = []string{i.names.PauseFilter(all[at].ID)}
		n, err := scan.Count(ctx)
		if err != nil {
			return nil, Cause(ctx, fmt.Errorf("count the messages that wait for %s: %w", all[at].Pattern, err))
		}
		all[at].Waiting = &n
	}
	return all, nil
}

func pausesOf(l *pause.List) []Pause {
	all := []Pause{}
	for _, p := range l.Present() {
		all = append(all, Pause{Pause: p})
	}
	return all
}

// Pause pauses the targets of a pattern. When it returns nil, all running instances have confirmed the pause, and send
// nothing to these targets.
func (i *Inspector) Pause(ctx context.Context, pattern string) (PauseChange, error) {
	return i.changePauses(ctx, true, func(l *pause.List) (*pause.List, error) { return l.Pause(pattern, time.Now()) })
}

// Resume resumes a pattern that was paused.
func (i *Inspector) Resume(ctx context.Context, pattern string) (PauseChange, error) {
	return i.changePauses(ctx, false, func(l *pause.List) (*pause.List, error) {
		next, err := l.Resume(pattern, time.Now())
		if errors.Is(err, pause.ErrNotPaused) {
			err = fmt.Errorf("%w; %s", err, pausedPatterns(l))
		}
		return next, err
	})
}

// pausedPatterns returns the paused patterns as the end of an error text.
func pausedPatterns(l *pause.List) string {
	names := l.Patterns()
	if len(names) == 0 {
		return "no pattern is paused"
	}
	return "resume takes exactly a paused pattern; the paused patterns are: " + text.Few(names)
}

// changePauses changes the list and announces it to the instances. A pause fails if the list cannot be stored, or if an
// instance does not support pauses. A resumption takes effect even if the list cannot be stored: the waiting messages
// may be the reason why the account is full.
func (i *Inspector) changePauses(
	ctx context.Context, stops bool, change func(*pause.List) (*pause.List, error),
) (PauseChange, error) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	found, _, err := i.streams.Provisioner(i.JetStream).Find(ctx)
	if err == nil {
		err = i.streams.Learn(found)
	}
	if err != nil {
		return PauseChange{}, Cause(ctx, err)
	}
	t := announcement{Inspector: i, found: found, answered: make(map[string]bool), confirmed: make(map[string]bool)}
	if err := t.round(ctx, nil); err != nil {
		return PauseChange{}, Cause(ctx, err)
	}
	if stops && len(t.unsupported) > 0 {
		return PauseChange{}, fmt.Errorf("%w: %s", ErrPausesUnsupported, text.Few(t.unsupported))
	}
	next, refused, err := t.change(ctx, change)
	if err != nil && (stops || refused) || next == nil {
		return PauseChange{}, Cause(ctx, err)
	}
	result := PauseChange{Pauses: pausesOf(next), Confirmed: []string{}, Unconfirmed: []string{}}
	if err != nil {
		result.NotStored = err.Error()
	}
	if err := t.announce(ctx, next); err != nil {
		return result, Cause(ctx, err)
	}
	result.Confirmed = slices.Sorted(maps.Keys(t.confirmed))
	result.Unconfirmed = append(result.Unconfirmed, t.unconfirmed()...)
	if len(result.Unconfirmed) > 0 {
		return result, fmt.Errorf("%w: %s", ErrUnconfirmed, text.Few(result.Unconfirmed))
	}
	return result, nil
}

// An announcement is the state of one change of the list of pauses.
type announcement struct {
	*Inspector
	found       []streams.Spec
	newest      *pause.List     // the newest list of any instance
	answered    map[string]bool // instances that have answered
	confirmed   map[string]bool // instances that follow the list
	unsupported []string        // instances without support for pauses
	table       []string        // instances in the table of owners
}

// change stores the next version of the list. If the change is not allowed, refused is true. If refused is false, an
// error means that next is not stored, and the caller may still announce next.
func (t *announcement) change(
	ctx context.Context, change func(*pause.List) (*pause.List, error),
) (next *pause.List, refused bool, err error) {
	store := t.pauseStore()
	for range maxChanges {
		read, readErr := store.Read(ctx)
		present := t.newest
		if read.List != nil && (present == nil || read.List.Version > present.Version) {
			present = read.List
		}
		if present == nil && len(read.Unopened.Present()) > 0 {
			return nil, true, ErrUnopened // a new list would end the pauses in the unopened list
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

// announce repeats the announcement of the list until all instances have confirmed it, for at most confirmTimeout.
func (t *announcement) announce(ctx context.Context, l *pause.List) error {
	clear(t.confirmed)
	for began := time.Now(); ; {
		if err := t.round(ctx, l); err != nil {
			return err
		}
		if len(t.unconfirmed()) == 0 || time.Since(began) > confirmTimeout {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askInterval):
		}
	}
}

// round sends one request to all instances. If a list is given, the request announces it.
func (t *announcement) round(ctx context.Context, l *pause.List) error {
	answered := make(map[string]bool)
	table, err := t.Inspector.table(ctx, t.found)
	if err != nil {
		return err
	}
	t.table, t.unsupported = slices.Sorted(maps.Keys(table.Instances)), nil
	var send func(reply string) error
	if l != nil {
		send = func(reply string) error { return t.pauseStore().Announce(l, reply) }
	}
	_, err = t.askAll(ctx, send, func(m Member) (more bool) {
		answered[m.Instance], t.answered[m.Instance] = true, true
		switch {
		case m.Pauses == nil:
			t.unsupported = append(t.unsupported, m.Instance)
		case !m.Proven:
			return true
		case l == nil:
			if known := t.pauseStore().Open(m.Pauses.Record); known != nil &&
				(t.newest == nil || known.Version > t.newest.Version) {
				t.newest = known
			}
		case m.Pauses.Applied >= l.Version:
			t.confirmed[m.Instance] = true
		}
		return l == nil || len(t.unconfirmed()) > 0
	})
	if len(t.table) > 0 { // an instance that does not answer and is not in the table is dead
		maps.DeleteFunc(t.answered, func(id string, _ bool) bool { return !answered[id] && !slices.Contains(t.table, id) })
	}
	return err
}

// unconfirmed returns the instances that may run and have not confirmed the list.
func (t *announcement) unconfirmed() []string {
	all := slices.Concat(t.table, slices.Collect(maps.Keys(t.answered)))
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(id string) bool { return t.confirmed[id] })
}
