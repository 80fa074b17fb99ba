package lease

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/ratelog"
)

// Shared divides the lanes evenly among the running instances, and takes over from instances that die. The package
// documentation has the protocol.
type Shared struct {
	store store
	cfg   SharedConfig
	log   *slog.Logger
	self  self
	grace atomic.Pointer[grace] // nil while this instance must not act
	heard heard
	todo  chan struct{} // capacity 1: a value makes Run start a turn immediately

	mu    sync.Mutex // guards local
	local local

	// Only Run uses the fields below.
	status <-chan nats.Status // of the connection
	view   view
	rounds rounds
	outage outage
	logged logged
}

// self is the identity of this instance.
type self struct {
	id      string    // unique to this run
	base    time.Time // when it started
	started int64     // base, as nanoseconds since 1970
	place   string    // see SharedConfig; only Run uses it
}

// heard has the times of received calls, as durations since self.base.
type heard struct {
	call     atomic.Int64 // the last call
	knower   atomic.Int64 // the last call of an instance that knows the table
	question atomic.Bool  // an instance asked who is alive, and this one has not answered
}

// local is this instance's own state: its leases, and the requests of its workers. Shared.mu guards it.
type local struct {
	waiters  map[string]*waiter
	leases   map[string]*sharedLease
	releases []*release
	leaving  bool                // this instance is stopping, and claims no lane
	owners   map[string]string   // a copy of the table's, for Owner
	calls    map[string]lastCall // of other instances, not older than forgetAfter
	declined map[string]bool     // lanes with a message of a newer format
}

// view is this instance's knowledge of the table and of the other instances.
type view struct {
	table     Table  // the last valid table
	known     bool   // the table was read or created
	sequence  uint64 // of the last message on the table's subject; zero if there is none
	garbled   bool   // that message is not the last valid table
	rewritten bool   // other instances may own lanes that are in no table
	roster    roster
	stable    time.Time // when the set of instances last changed
}

// rounds has the times of past rounds and of the next one.
type rounds struct {
	beats   uint64    // the own counter
	stored  uint64    // sequence of the counter's message
	last    time.Time // when the last round began
	next    time.Time // when the next one must begin
	polled  time.Time // when an instance that is alone last read the table
	asked   time.Time // when it last asked who is alive
	pending bool      // a read was requested since the last round

	sweepBelow uint64    // counters with lower sequences are of dead instances; zero if unknown
	sweepAt    time.Time // when to remove them; zero if there are none
}

// outage is a period in which rounds fail. The zero value means that there is none.
type outage struct {
	since  time.Time
	logged ratelog.Limit // of the report that instances continue without the stream
}

// logged has the reports that are already in the log.
type logged struct {
	rounds  failureLog
	table   ratelog.Limit // of the report that the stored table is not valid
	older   bool          // an older instance has this one's name, so this one stops
	younger bool          // a younger instance has this one's name
}

// SharedConfig is the configuration of Shared.
type SharedConfig struct {
	Conn      *nats.Conn
	APIPrefix string // "$JS.API" unless a domain or an import says otherwise
	Subjects  Subjects
	// Create creates the stream if it is missing. It is nil if that is not allowed.
	Create func(context.Context) error
	// MaxOwners is the maximum number of instances that own lanes; others stand by.
	MaxOwners int
	// Format is the newest format of messages that this instance reads.
	Format int
	// Name is the operator's name for this instance. It is unique, and the same after a restart. If it is empty, Host
	// becomes part of the instance's id.
	Name, Host string
	// Place identifies where the instance runs, such as a host and an address it listens on. It is set only if no other
	// instance can run there, and used if Name is empty. If two instances have the same place, the younger continues
	// without it.
	Place string
	// Locked is set if Place is locked. Another instance in the table with this place is then dead.
	Locked bool
	// Connected reports whether the connection is up. It must not block: the loop of every lane calls it. If it is nil,
	// Conn reports it, under a lock that a publish holds while the network accepts no data.
	Connected func() bool
	// Keys prove that an instance of this broker wrote a message. If Keys is nil, messages have no seal, and all are
	// trusted.
	Keys *message.Keys
	// Fail is called once when this instance must stop, with ErrNameInUse. It may be nil.
	Fail func(error)
	Log  *slog.Logger
}

// waiter is an Acquire in progress.
type waiter struct {
	got     chan *sharedLease // capacity 1
	waiting func()
}

// release is a Release in progress.
type release struct {
	lease *sharedLease
	at    Cursor
	done  chan struct{} // closed by Run when other instances can see it
}

// NewShared returns the leaser of one instance. It does nothing before Run.
func NewShared(cfg SharedConfig) *Shared {
	if cfg.Connected == nil {
		cfg.Connected = cfg.Conn.IsConnected
	}
	token := strings.Map(func(r rune) rune {
		if r < '!' || r > '~' || strings.ContainsRune(".*>", r) {
			return '-'
		}
		return r
	}, cmp.Or(cfg.Name, cfg.Host))
	now := time.Now()
	s := &Shared{
		store: store{
			conn: cfg.Conn, api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix}, keys: cfg.Keys, Subjects: cfg.Subjects,
		},
		cfg: cfg, log: cfg.Log, todo: make(chan struct{}, 1),
		self: self{id: fmt.Sprintf("%s-%06x", token, rand.Uint32()&0xffffff), base: now, started: now.UnixNano()},
		local: local{
			waiters: make(map[string]*waiter), leases: make(map[string]*sharedLease), calls: make(map[string]lastCall),
			declined: make(map[string]bool),
		},
		view: view{roster: roster{seen: make(map[string]sighting)}, table: Table{}.clone()},
	}
	if cfg.Name == "" {
		s.self.place = cfg.Place
	}
	s.heard.call.Store(int64(-lostAfter))
	s.heard.knower.Store(int64(-stableAfter))
	return s
}

// Instance returns the unique id of this instance: its name, and a suffix that no other run has.
func (s *Shared) Instance() string { return s.self.id }

// Run takes part until ctx ends, then leaves.
func (s *Shared) Run(ctx context.Context) {
	calls, err := s.store.conn.Subscribe(s.store.Call, s.hear)
	if err != nil {
		s.log.Error("cannot receive the other instances' messages; owning no lane", "err", err)
		<-ctx.Done()
		return
	}
	defer func() { _ = calls.Unsubscribe() }() // fails only on a closed connection
	status := s.store.conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer s.store.conn.RemoveStatusListener(status)
	s.status = status
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		asked := false
		select {
		case <-ctx.Done():
			s.leave()
			return
		case <-s.todo:
			asked = true
		case _, open := <-s.status:
			s.connectionChanged(open)
			asked = true
		case <-timer.C:
		}
		timer.Reset(s.turn(ctx, asked))
	}
	s.leave()
}

// Acquire waits until this instance owns the lane.
func (s *Shared) Acquire(ctx context.Context, lane string, waiting func()) (Lease, error) {
	w := &waiter{got: make(chan *sharedLease, 1), waiting: sync.OnceFunc(waiting)}
	s.mu.Lock()
	s.local.waiters[lane] = w
	s.mu.Unlock()
	s.wake()
	select {
	case l := <-w.got:
		return l, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	delete(s.local.waiters, lane)
	s.mu.Unlock()
	select {
	case l := <-w.got: // granted as ctx ended; the caller releases it
		return l, nil
	default:
		return nil, ctx.Err()
	}
}

// Owner returns the instance that owns a lane.
func (s *Shared) Owner(lane string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local.owners[lane]
}

// Probe makes Run read the table immediately.
func (s *Shared) Probe() { s.wake() }

// release passes a release to Run, and waits until other instances can see it.
func (s *Shared) release(ctx context.Context, l *sharedLease, at Cursor) error {
	r := &release{lease: l, at: at, done: make(chan struct{})}
	s.mu.Lock()
	if s.local.leases[l.lane] != l {
		s.mu.Unlock()
		return nil
	}
	select {
	case <-l.done:
	default:
		s.local.leaving = true // no instance requested the lane, so this one is stopping
	}
	s.local.releases = append(s.local.releases, r)
	s.mu.Unlock()
	s.wake()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("announce that %s is free: %w; other instances take over within seconds", l.lane, ctx.Err())
	}
}

// wake makes Run start a turn immediately.
func (s *Shared) wake() {
	select {
	case s.todo <- struct{}{}:
	default:
	}
}

// now returns the present time by both clocks.
func (s *Shared) now() instant { return s.at(time.Now()) }

func (s *Shared) at(t time.Time) instant { return instant{wall: t.Round(0), mono: t.Sub(s.self.base)} }

// connectionChanged ends the grace of an instance that is alone: the instance may have missed a call. Open is false if
// the connection is closed permanently.
func (s *Shared) connectionChanged(open bool) {
	if !open {
		s.status = nil
	}
	if g := s.grace.Load(); g != nil && g.alone {
		s.grace.Store(nil)
	}
}
