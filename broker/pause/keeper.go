package pause

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/ratelog"
)

const (
	// The intervals at which Run reads the record.
	idleInterval   = 5 * time.Minute        // if no target is paused: finds a list whose announcement was lost
	pausedInterval = 10 * time.Second       // while a target is paused: updates the number of waiting messages
	busyInterval   = 500 * time.Millisecond // while a pause ends
	// loadTimeout is the time after which a start does not try again to read the record. The election of a stream leader
	// takes at most 9 s. A stream without a majority must not stop all lanes.
	loadTimeout = 15 * time.Second
	// maxSetAttempts is the maximum number of attempts of SetState to store a change while others change the list. If all
	// attempts fail, the active instance calls SetState again at its next check of the lane.
	maxSetAttempts = 5
	// MaxClosing is the maximum time for which an instance holds due messages in memory for a pause that is closing.
	// After that time, due messages join the lane again: the active instance has died or cannot drain the lane.
	MaxClosing = 3 * time.Second
)

// Keeper holds the list of one instance, and keeps the record up to date. It is safe for concurrent use.
type Keeper struct {
	cfg            Config
	rateLog        *ratelog.Logger
	appliedVersion atomic.Int64  // the version that was applied last
	parked         atomic.Uint64 // number of parked messages at the last count
	wake           chan struct{} // capacity 1; wakes Run, which applies the list; never closed
	refresh        atomic.Bool   // Run must also read the record

	// The following fields are used by Load, and afterwards only by Run.
	resealTime time.Time // local time of the last resealing of the record
	hasRead    bool      // the record was read at least once, or the stream did not exist

	mu      sync.Mutex // guards the fields below, and every write to the field view
	view    atomic.Pointer[view]
	changed chan struct{} // closed when the list changes
	// base is the version of the record when SetState made the present list, if that list could not be stored, or perhaps
	// was not; otherwise zero.
	base        int64
	readVersion int64 // the version of the record when it was last read; zero if it was not
}

// view is a list, with the list that replaces it at a given time.
type view struct {
	list          *List
	timed         atomic.Pointer[timedList] // nil until ListAt has computed it
	fallbackStart time.Time                 // local time from which fallback replaces the list
	fallback      *List                     // the list with its closing pauses as resuming; nil if no pause is closing
}

// timedList is a list with the states of the pauses in a period: see List.at.
type timedList struct {
	list        *List
	from, until time.Time // by the wall clock; a zero until is no end
}

// Config is the configuration of a keeper.
type Config struct {
	Store Store
	// Create creates the stream after it was deleted. It is nil if the broker may not create streams.
	Create func(context.Context) error
	// Apply makes the instance apply a list, as defined in the package documentation, and returns when the instance has
	// applied the list.
	Apply func(context.Context, *List)
	// Count returns the number of messages in the stream.
	Count func(context.Context) (uint64, error)
	Log   *slog.Logger
}

// NewKeeper returns a keeper without a list. The caller calls Load and then Run.
func NewKeeper(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, rateLog: ratelog.New(cfg.Log), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	k.view.Store(&view{})
	return k
}

// List returns the present list, or nil if no list is known.
func (k *Keeper) List() *List { return k.view.Load().list }

// ListAt returns the list that applies at a local time. A nil keeper has no pauses.
func (k *Keeper) ListAt(local time.Time) *List {
	if k == nil {
		return nil
	}
	v := k.view.Load()
	if v.fallback != nil && local.After(v.fallbackStart) {
		applies, _ := v.fallback.at(local)
		return applies
	}
	local = local.Round(0)
	if t := v.timed.Load(); t != nil && !local.Before(t.from) && (t.until.IsZero() || local.Before(t.until)) {
		return t.list
	}
	applies, until := v.list.at(local)
	v.timed.Store(&timedList{applies, local, until})
	return applies
}

// AppliedVersion returns the version that the instance has applied last.
func (k *Keeper) AppliedVersion() int64 { return k.appliedVersion.Load() }

// ParkedMessages returns the number of parked messages, as of the last reading of the record.
func (k *Keeper) ParkedMessages() uint64 { return k.parked.Load() }

// Record returns the sealed list, for the answers to operators. It is empty if no list is known.
func (k *Keeper) Record() Record {
	l := k.List()
	if l == nil {
		return Record{}
	}
	return k.cfg.Store.Seal(l)
}

// Changed returns a channel that is closed when the list changes.
func (k *Keeper) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// Receive replaces the list by the list of an announcement if the announcement is trusted and its list is newer. Any
// client can send an announcement.
func (k *Keeper) Receive(r Record) {
	if l := k.cfg.Store.Open(r); l != nil {
		k.adopt(l)
		if k.mustRead() {
			k.Refresh()
		}
	}
}

// mustRead reports whether only the record shows which list counts, or when the present list was stored.
func (k *Keeper) mustRead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.base != 0 ||
		slices.ContainsFunc(k.view.Load().list.All(), func(p Pause) bool { return p.Stored.IsZero() })
}

// FirstPause returns the id of the pause in whose lane the first stored message is. If id is not empty, only the lane
// of that pause counts. Empty means that the leader has no message, or that there is no stream. After an error, the
// results are zero.
func (k *Keeper) FirstPause(ctx context.Context, id string) (first string, empty bool) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	names := k.cfg.Store.Names
	filter := names.PausedStreamFilter()
	if id != "" {
		filter = names.PauseFilter(id)
	}
	m, err := k.cfg.Store.api().Next(ctx, names.PausedStream(), 1, filter)
	empty = errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
	return names.Parse(m.Subject).Token, empty
}

// Refresh makes Run read the record soon. Call it when a connection is back: an announcement may have been missed.
func (k *Keeper) Refresh() {
	k.refresh.Store(true)
	signal(k.wake)
}

// adopt makes a list the present list if it is newer. If it is the present list, it may show when that was stored.
func (k *Keeper) adopt(l *List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch present := k.view.Load(); {
	case present.list == nil || present.list.Version < l.Version:
		k.replaceLocked(l, 0)
	case present.list.Version == l.Version && k.base == 0 && len(l.Pauses) > 0 && !l.Pauses[0].Stored.IsZero():
		k.view.Store(&view{list: l, fallbackStart: present.fallbackStart, fallback: present.fallback})
	}
}

// adoptUnstored replaces the present list by a list that was made from it, and that may not be stored.
func (k *Keeper) adoptUnstored(l, present *List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.view.Load().list.Version == present.Version {
		k.replaceLocked(l, k.readVersion)
	}
}

// noteRead records the version of the record.
func (k *Keeper) noteRead(l *List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readVersion = l.Version
}

// yield makes a stored list the present list, although that has a higher version, and reports whether it did: the
// present list could not be stored, and then another writer, whose clock is behind, has changed the record.
func (k *Keeper) yield(stored *List) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.base == 0 || stored.Version == k.base {
		return false
	}
	k.appliedVersion.Store(0)
	k.replaceLocked(stored, 0)
	return true
}

// stored records that a list is stored.
func (k *Keeper) stored(l *List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.view.Load().list == l {
		k.base = 0
	}
}

func (k *Keeper) replaceLocked(l *List, base int64) {
	k.base = base
	v := &view{list: l}
	for i, p := range l.Pauses {
		if p.State != Closing {
			continue
		}
		if v.fallback == nil {
			v.fallbackStart = time.Now().Add(MaxClosing)
			v.fallback = &List{Version: l.Version, Pauses: slices.Clone(l.Pauses)}
		}
		v.fallback.Pauses[i].State = Resuming
	}
	k.view.Store(v)
	close(k.changed)
	k.changed = make(chan struct{})
	signal(k.wake)
}

// Load reads the record before the broker serves lanes. If the record cannot be read within loadTimeout, Load logs an
// error and returns. Then the broker also delivers to paused targets until Run has read the record: a longer wait would
// stop the messages for all targets.
func (k *Keeper) Load(ctx context.Context) {
	for startTime := time.Now(); ; {
		err := k.read(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		if time.Since(startTime) > loadTimeout {
			k.cfg.Log.Error("the list of paused targets cannot be read; the broker delivers to all targets until it can be read",
				"stream", k.cfg.Store.Names.PausedStream(), "err", err)
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(busyInterval):
		}
	}
	k.apply(ctx)
}

// Run applies new lists, and keeps the record up to date, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(k.interval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
			k.refresh.Store(true)
		}
		k.apply(ctx)
		if k.refresh.Swap(false) {
			if err := k.read(ctx); err != nil && ctx.Err() == nil {
				k.rateLog.Log(slog.LevelWarn, "the list of paused targets cannot be read or stored; will retry",
					"stream", k.cfg.Store.Names.PausedStream(), "err", err)
			}
			k.apply(ctx)
		}
		timer.Reset(k.interval())
	}
}

// interval returns the time until Run reads the record again. Until the first successful reading, the interval is
// short, because the broker also delivers to paused targets.
func (k *Keeper) interval() time.Duration {
	if !k.hasRead {
		return busyInterval
	}
	interval := idleInterval
	for _, p := range k.List().Present() {
		switch p.State {
		case Paused:
			interval = pausedInterval
		case Open:
		default:
			return busyInterval
		}
	}
	return interval
}

// apply makes the instance apply the present list.
func (k *Keeper) apply(ctx context.Context) {
	l := k.List()
	if l == nil || l.Version <= k.appliedVersion.Load() {
		return
	}
	k.cfg.Apply(ctx, l)
	k.appliedVersion.Store(l.Version)
}

// SetState changes the state of a pause, if the pause is in oldState, and stores the list, which the other instances
// read within busyInterval. After an error other than a conflict, this instance applies the list nevertheless, and Run
// stores it later. Until then, a restarted instance has the earlier state. After maxSetAttempts conflicts, SetState
// does not change the pause.
func (k *Keeper) SetState(ctx context.Context, id string, oldState, newState State) {
	for range maxSetAttempts {
		result, err := k.cfg.Store.Read(ctx)
		if err == nil && result.List != nil {
			if !k.yield(result.List) {
				k.adopt(result.List)
			}
			k.noteRead(result.List)
		}
		if p, ok := k.List().Get(id); !ok || p.State != oldState {
			return
		}
		present := k.List()
		next := present.Set(id, newState, time.Now())
		if err == nil {
			result.Sequence, err = k.cfg.Store.Write(ctx, next, result)
			result.hasEarlier, result.foreignSequences = true, nil
		}
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			k.rateLog.Log(slog.LevelWarn,
				"the list of paused targets cannot be stored; this instance applies it and stores it later",
				"err", err)
			k.adoptUnstored(next, present)
			return
		}
		k.adopt(next)
		_ = k.cfg.Store.tidy(ctx, result) // after an error, the next read removes the remaining messages
		return
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
