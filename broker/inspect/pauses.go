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
	// confirmTimeout is the timeout for the instances' confirmations of a new list of pauses. Within this time, another
	// instance takes over from a dead one.
	confirmTimeout = 12 * time.Second
	// maxChanges is the maximum number of attempts to change the list while other clients change it.
	maxChanges = 10
)

var (
	// ErrUnconfirmed is returned if instances have not confirmed the new list within the timeout.
	ErrUnconfirmed = errors.New("instances have not confirmed the change")
	// ErrNoPauses is returned if the stream of the paused messages is missing.
	ErrNoPauses = errors.New("the stream of the paused messages is missing: create it with delaybroker provision")
	// ErrUnopened is returned if the only list of pauses is sealed with a secret that is missing in these settings.
	ErrUnopened = errors.New("the list of paused targets is sealed with a secret that is not set here: set " +
		"DELAY_SECRET to the brokers' value; if the secret is lost, restart a broker: it stores the list again under " +
		"its own secret, and these targets stay paused")
)

// Pause is a pattern of targets, with the state of their pause.
type Pause struct {
	pause.Pause
	Waiting *uint64 `json:"waiting,omitempty"` // messages; nil if they were not counted
}

// predicate returns the state of the pause as the predicate of a sentence about a target.
func (p Pause) predicate() string {
	switch {
	case p.State == pause.Paused && !p.Hours.IsZero():
		return fmt.Sprintf("is paused in its quiet hours (%s, %s)", p.Pattern, p.Hours)
	case p.State == pause.Paused:
		return fmt.Sprintf("is paused since %s (%s)", text.ShortMoment(p.Since), p.Pattern)
	}
	return fmt.Sprintf("is being resumed (%s)", p.Pattern)
}

// PauseChange is the result of Pause or Resume.
type PauseChange struct {
	Pauses      []Pause  `json:"paused"`          // the current list
	Confirmed   []string `json:"told"`            // instances that confirmed the list
	Unconfirmed []string `json:"untold"`          // instances that may run without having confirmed the list
	NotStored   string   `json:"error,omitempty"` // why the list was not stored; the instances follow it anyway
}

// pauseStore returns the store of the list of pauses, with the secrets that the Inspector has read so far.
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
	case len(read.UnopenedList.Present()) > 0:
		return nil, ErrUnopened
	}
	pauses := pausesOf(read.List)
	for n := range pauses {
		scan := i.ScanHeaders(i.names.PausedStream(), "pauses")
		scan.Filters = []string{i.names.PauseFilter(pauses[n].ID)}
		count, err := scan.Count(ctx)
		if err != nil {
			return nil, Cause(ctx, fmt.Errorf("count the messages that wait for %s: %w", pauses[n].Pattern, err))
		}
		pauses[n].Waiting = &count
	}
	return pauses, nil
}

func pausesOf(l *pause.List) []Pause {
	pauses := []Pause{}
	for _, p := range l.Present() {
		pauses = append(pauses, Pause{Pause: p})
	}
	return pauses
}

// Pause pauses the targets of a pattern, in quiet hours only, unless hours is zero. After a return without an error, no
// running instance sends to these targets.
func (i *Inspector) Pause(ctx context.Context, pattern string, hours pause.Hours) (PauseChange, error) {
	return i.changePauses(ctx, pattern, true, func(l *pause.List) (*pause.List, error) {
		return l.Pause(pattern, hours, time.Now())
	})
}

// Resume resumes a paused pattern.
func (i *Inspector) Resume(ctx context.Context, pattern string) (PauseChange, error) {
	return i.changePauses(ctx, pattern, false, func(l *pause.List) (*pause.List, error) {
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
	return "give the pattern exactly as it was paused; the paused patterns are: " + text.ShortList(names)
}

// changePauses changes the list and announces it to the instances. A pause fails if the list cannot be stored, or if an
// instance does not support pauses. A resumption takes effect even if the list cannot be stored, provided that an
// instance may run: perhaps the waiting messages have filled the account.
func (i *Inspector) changePauses(
	ctx context.Context, pattern string, pausing bool, change func(*pause.List) (*pause.List, error),
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
	a := announcement{Inspector: i, found: found, pattern: pattern,
		answered: make(map[string]bool), confirmed: make(map[string]bool)}
	if err := a.round(ctx, nil); err != nil {
		return PauseChange{}, Cause(ctx, err)
	}
	next, refused, err := a.change(ctx, change)
	if err != nil && (pausing || refused || len(a.unconfirmed()) == 0) || next == nil {
		return PauseChange{}, Cause(ctx, err)
	}
	result := PauseChange{Pauses: pausesOf(next), Confirmed: []string{}, Unconfirmed: []string{}}
	if err != nil {
		result.NotStored = err.Error()
	}
	if err := a.announce(ctx, next); err != nil {
		return result, Cause(ctx, err)
	}
	result.Confirmed = slices.Sorted(maps.Keys(a.confirmed))
	result.Unconfirmed = append(result.Unconfirmed, a.unconfirmed()...)
	if len(result.Unconfirmed) > 0 {
		return result, fmt.Errorf("%w: %s", ErrUnconfirmed, text.ShortList(result.Unconfirmed))
	}
	return result, nil
}

// An announcement is one change of the list of pauses: it stores the new list, sends it to the instances, and collects
// their answers.
type announcement struct {
	*Inspector
	found     []streams.Spec
	pattern   string          // of the changed pause
	newest    *pause.List     // the newest list in the sealed answers of instances
	answered  map[string]bool // instances that have answered
	confirmed map[string]bool // instances that follow the list
	active    string          // the active instance by its claim; empty if unknown
}

// change stores the next version of the list. If refused is true, there is no list to announce. Otherwise the caller
// may announce the returned list, even after an error.
func (a *announcement) change(
	ctx context.Context, change func(*pause.List) (*pause.List, error),
) (next *pause.List, refused bool, err error) {
	store := a.pauseStore()
	for range maxChanges {
		read, readErr := store.Read(ctx)
		present := a.newest
		if read.List != nil && (present == nil || read.List.Version > present.Version) {
			present = read.List
		}
		if present == nil && len(read.UnopenedList.Present()) > 0 {
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
func (a *announcement) announce(ctx context.Context, l *pause.List) error {
	clear(a.confirmed)
	for began := time.Now(); ; {
		if err := a.round(ctx, l); err != nil {
			return err
		}
		if len(a.unconfirmed()) == 0 || time.Since(began) > confirmTimeout {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askInterval):
		}
	}
}

// round sends one request to all instances. Unless l is nil, the request announces l.
func (a *announcement) round(ctx context.Context, l *pause.List) error {
	responders := make(map[string]bool)
	claim, err := a.claim(ctx, a.found)
	if err != nil {
		return err
	}
	a.active = claim.Active.ID
	var send func(reply string) error
	if l != nil {
		send = func(reply string) error { return a.pauseStore().Announce(l, reply) }
	}
	err = a.askAll(ctx, send, func(m Member) (more bool) {
		responders[m.Instance], a.answered[m.Instance] = true, true
		if !m.Proven {
			return true
		}
		switch known := a.pauseStore().Open(m.Pauses.Record); {
		case known == nil: // not a broker's answer
		case l == nil:
			if a.newest == nil || known.Version > a.newest.Version {
				a.newest = known
			}
		case m.Pauses.Applied == known.Version && known.Follows(l, a.pattern):
			a.confirmed[m.Instance] = true // by the list itself: an instance may have another list with a higher version
		default:
			delete(a.confirmed, m.Instance)
		}
		return l == nil || len(a.unconfirmed()) > 0
	})
	// An instance that answered an earlier request, but not this one, and is not active, is dead.
	if a.active != "" {
		maps.DeleteFunc(a.answered, func(id string, _ bool) bool { return !responders[id] && id != a.active })
	}
	return err
}

// unconfirmed returns the instances that may run and have not confirmed the list.
func (a *announcement) unconfirmed() []string {
	names := slices.Collect(maps.Keys(a.answered))
	if a.active != "" {
		names = append(names, a.active)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(id string) bool { return a.confirmed[id] })
}
