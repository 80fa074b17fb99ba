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

	"delaybroker/broker/message"
	"delaybroker/broker/ratelog"
)

const (
	// The record is read again after idleEvery, in case a change was not heard; after pausedEvery while something is
	// paused, for the number of messages that wait; and after busyEvery while the list is about to change.
	idleEvery   = 5 * time.Minute
	pausedEvery = 10 * time.Second
	busyEvery   = 500 * time.Millisecond
	// loadPatience is how long a start waits for the record. An election takes up to 9 s; a stream that has lost its
	// majority must not keep the lanes from being served.
	loadPatience = 15 * time.Second
	// moveTries is how often a change is tried while others change the list. It comes again with the next look.
	moveTries = 5
	// CloseMost is how long what becomes due is held in memory for a pause that is closing. If that does not end, its
	// owner has died or cannot drain the lane, and what becomes due joins the lane again.
	CloseMost = 3 * time.Second
)

// Keeper knows the list for one instance, and keeps the record. It is safe for concurrent use.
type Keeper struct {
	cfg     Config
	notes   *ratelog.Logger
	acked   atomic.Int64  // the version that was applied last
	waiting atomic.Uint64 // messages that wait, when last counted
	wake    chan struct{} // one slot: Run is to apply a list, or to look
	look    atomic.Bool   // Run is to read the record

	resealed time.Time // local; when the record was last sealed anew. It belongs to Load, and then to Run.

	mu      sync.Mutex // guards changes of what follows
	view    atomic.Pointer[view]
	changed chan struct{} // closed when the list changes
}

// view is a list, and what it means a while after it was taken.
type view struct {
	list  *List
	until time.Time // local; from then on, stale is what counts
	stale *List     // with pauses that are closing taken for resuming
}

// Config is the configuration of a keeper.
type Config struct {
	Store Store
	// Create makes the stream when it is gone. Nil where that is not allowed.
	Create func(context.Context) error
	// Apply has the instance act by a list, and returns when it does.
	Apply func(context.Context, *List)
	// Count is how many messages the stream holds.
	Count func(context.Context) (uint64, error)
	Log   *slog.Logger
}

// NewKeeper makes a keeper that knows nothing. The caller loads and runs it.
func NewKeeper(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, notes: ratelog.New(cfg.Log), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	k.view.Store(&view{})
	return k
}

// List is what is known now; nil if nothing is.
func (k *Keeper) List() *List { return k.view.Load().list }

// At is what holds at a local time. For a nil keeper, nothing is paused.
func (k *Keeper) At(local time.Time) *List {
	if k == nil {
		return nil
	}
	v := k.view.Load()
	if v.stale != nil && local.After(v.until) {
		return v.stale
	}
	return v.list
}

// Applied is the version by which the instance acts for certain, and Waiting how many messages wait, as far as known.
func (k *Keeper) Applied() int64  { return k.acked.Load() }
func (k *Keeper) Waiting() uint64 { return k.waiting.Load() }

// Record is what is known, to be told to others.
func (k *Keeper) Record() Record {
	l := k.List()
	if l == nil {
		return Record{}
	}
	return k.cfg.Store.Seal(l)
}

// Changed is closed when the list changes.
func (k *Keeper) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// Hear takes in an announcement. It may come from anybody.
func (k *Keeper) Hear(r Record) {
	if l := k.cfg.Store.Open(r); l != nil {
		k.take(l)
	}
}

// First is the pause of the first message that waits for one, or for any if the id is "". It returns
// jetstream.ErrMsgNotFound if none does.
func (k *Keeper) First(ctx context.Context, id string) (string, error) {
	return k.cfg.Store.First(ctx, id)
}

// Look has the record read soon: a change may have been missed.
func (k *Keeper) Look() {
	k.look.Store(true)
	signal(k.wake)
}

// take makes a list the present one if it is newer.
func (k *Keeper) take(l *List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.view.Load().list; now != nil && now.Version >= l.Version {
		return
	}
	v := &view{list: l}
	for _, p := range l.Pauses {
		if p.State != Closing {
			continue
		}
		if v.stale == nil {
			v.until = time.Now().Add(CloseMost)
			v.stale = &List{Version: l.Version, Pauses: slices.Clone(l.Pauses)}
		}
		i := slices.Index(v.stale.Pauses, p)
		v.stale.Pauses[i].State = Resuming
	}
	k.view.Store(v)
	close(k.changed)
	k.changed = make(chan struct{})
	signal(k.wake)
}

// Load reads the record before lanes are served. If it cannot be read for a while, Load returns all the same: what is
// paused would go out then, and everything would wait otherwise.
func (k *Keeper) Load(ctx context.Context) {
	for began := time.Now(); ; {
		err := k.read(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		if time.Since(began) > loadPatience {
			k.cfg.Log.Error("the list of paused targets cannot be read; delivering to all of them until it can",
				"stream", k.cfg.Store.Names.PausedStream(), "err", err)
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(busyEvery):
		}
	}
	k.apply(ctx)
}

// Run applies new lists, and keeps the record, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(k.pause())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
			k.look.Store(true)
		}
		k.apply(ctx)
		if k.look.Swap(false) {
			if err := k.read(ctx); err != nil && ctx.Err() == nil {
				k.notes.Log(slog.LevelWarn, "the list of paused targets cannot be read or kept; trying again",
					"stream", k.cfg.Store.Names.PausedStream(), "err", err)
			}
			k.apply(ctx)
		}
		timer.Reset(k.pause())
	}
}

// pause is how long until the record is read again.
func (k *Keeper) pause() time.Duration {
	every := idleEvery
	for _, p := range k.List().Present() {
		if p.State != Paused {
			return busyEvery
		}
		every = pausedEvery
	}
	return every
}

// apply has the instance act by the present list.
func (k *Keeper) apply(ctx context.Context) {
	l := k.List()
	if l == nil || l.Version <= k.acked.Load() {
		return
	}
	k.cfg.Apply(ctx, l)
	k.acked.Store(l.Version)
}

// read reads the record. What it lacks is written back: somebody has purged the stream, or deleted it, or a change
// could not be stored.
func (k *Keeper) read(ctx context.Context) error {
	read, err := k.cfg.Store.Read(ctx)
	known := k.List()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		k.waiting.Store(0)
		if len(known.Present()) == 0 {
			return nil
		}
		if k.cfg.Create == nil {
			return err
		}
		if err := k.cfg.Create(ctx); err != nil {
			return err
		}
		read, err = k.cfg.Store.Read(ctx)
	}
	if err != nil {
		return err
	}
	k.sayUnopened(read, known)
	switch {
	case known == nil && read.List == nil:
		k.begin(ctx, read)
	case read.List != nil && (known == nil || read.List.Version > known.Version):
		k.take(read.List)
	case known != nil && (read.List == nil || read.List.Version < known.Version):
		if _, err := k.cfg.Store.Write(ctx, known, read); err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
	case read.untidy():
		if err := k.cfg.Store.Tidy(ctx, read); err != nil {
			return err
		}
	}
	k.reseal(ctx, read)
	if len(k.List().Present()) == 0 {
		k.waiting.Store(0)
		return nil
	}
	n, err := k.cfg.Count(ctx)
	if err == nil {
		k.waiting.Store(n - min(n, 1)) // without the record
	}
	return err
}

// sayUnopened logs that there is a list that nobody here can open.
func (k *Keeper) sayUnopened(read Stored, known *List) {
	if len(read.Unopened.Present()) == 0 {
		return
	}
	const what = "the list of paused targets is sealed with a secret that DELAY_SECRET does not name; "
	next := "its targets stay paused until an operator resumes them"
	if known != nil {
		next = "this instance goes on by the list that it knows, and writes that back"
	}
	k.notes.Log(slog.LevelError, what+next,
		"stream", k.cfg.Store.Names.PausedStream(), "patterns", patterns(read.Unopened))
}

func patterns(l *List) (all []string) {
	for _, p := range l.Present() {
		all = append(all, p.Pattern)
	}
	return all
}

// begin stores a first list where there is none that can be opened. It holds what unopened lists name: to hold a
// message too long is better than to send one that an operator has stopped. From then on there is a proven list, beside
// which the unopened lists of strangers mean nothing.
func (k *Keeper) begin(ctx context.Context, read Stored) {
	first := &List{Version: 1}
	if len(read.Unopened.Present()) > 0 {
		first = read.Unopened.held(time.Now())
		k.take(first)
	}
	if _, err := k.cfg.Store.Write(ctx, first, read); err != nil && !errors.Is(err, ErrConflict) && ctx.Err() == nil {
		k.notes.Log(slog.LevelWarn, "a first list of paused targets cannot be stored; trying again", "err", err)
	}
}

// reseal stores the list anew, as its next version, where the record's key is not the one that seals now: that key may
// be taken away. While instances differ about the first key, each may do so, and none does it often.
func (k *Keeper) reseal(ctx context.Context, read Stored) {
	known := k.List()
	if read.Key != message.LaterKey || known == nil || known.Version != read.List.Version ||
		!k.resealed.IsZero() && time.Since(k.resealed) < idleEvery {
		return
	}
	next := known.again()
	switch _, err := k.cfg.Store.Write(ctx, next, read); {
	case err == nil:
		k.resealed = time.Now()
		k.take(next)
	case !errors.Is(err, ErrConflict) && ctx.Err() == nil:
		k.notes.Log(slog.LevelWarn, "the list of paused targets is still sealed with an earlier secret; trying again",
			"err", err)
	}
}

// Move moves a pause from one state to the next, and stores that: the other instances read it within busyEvery. If it
// cannot be stored, it counts all the same: the record is written when it can be, and until then a restart goes on
// with the state before.
func (k *Keeper) Move(ctx context.Context, id string, from, to State) {
	for range moveTries {
		read, err := k.cfg.Store.Read(ctx)
		if err == nil && read.List != nil {
			k.take(read.List)
		}
		if p, ok := k.List().Get(id); !ok || p.State != from {
			return
		}
		next := k.List().Set(id, to, time.Now())
		if err == nil {
			read.At, err = k.cfg.Store.Write(ctx, next, read)
			read.earlier, read.foreign = true, nil
		}
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			k.notes.Log(slog.LevelWarn, "the list of paused targets is not stored; going on with it", "err", err)
		}
		k.take(next)
		if err == nil {
			_ = k.cfg.Store.Tidy(ctx, read) // or with the next look
		}
		return
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
