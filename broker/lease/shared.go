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
	store      store
	cfg        SharedConfig
	log        *slog.Logger
	self       self
	grace      atomic.Pointer[grace] // nil: this instance must not act
	callState  callState
	wakeSignal chan struct{} // capacity 1: a value makes Run start a turn immediately

	mu    sync.Mutex // guards state
	state state

	// Only Run uses the fields below.
	status   <-chan nats.Status // the states of the connection
	view     view
	rounds   rounds
	outage   outage
	logState logState
}

// self identifies this instance.
type self struct {
	id      string    // unique to this run
	base    time.Time // when this instance started
	started int64     // base, as nanoseconds since 1970
	place   string    // see SharedConfig; only Run uses it
}

// callState describes the received calls. The times are durations since self.base.
type callState struct {
	last         atomic.Int64 // time of the last call
	lastInformed atomic.Int64 // time of the last call of an instance that has the table
	question     atomic.Bool  // an instance asked which instances are alive, and this one has not answered
}

// state is this instance's own state: its leases, and the requests of its workers. Shared.mu guards it.
type state struct {
	waiters       map[string]*waiter
	leases        map[string]*sharedLease
	releases      []*release
	leaving       bool                // this instance is stopping, and claims no lane
	owners        map[string]string   // owner of each lane in the table, for Owner
	calls         map[string]lastCall // the last call of each other instance, at most callLifetime old
	declinedLanes map[string]bool     // lanes with a message of a newer format
}

// view is this instance's knowledge of the table and of the other instances.
type view struct {
	table        Table  // the last valid table
	hasTable     bool   // the table was read or created
	sequence     uint64 // sequence of the last message on the table's subject; zero if there is none
	needsRewrite bool   // the last message on the subject is not the last valid table
	rewritten    bool   // the table was lost and created again, so other instances may own lanes that it lacks
	liveness     liveness
	// membersChanged is the time of the last change of the set of instances.
	membersChanged time.Time
}

// rounds has what Run remembers between rounds.
type rounds struct {
	counter      uint64    // this instance's counter
	beatSequence uint64    // sequence of the counter's message
	lastStart    time.Time // when the last round or read began
	nextStart    time.Time // when the next round must begin
	polledAt     time.Time // when this instance last read the table while it was alone
	askedAt      time.Time // when this instance last asked which instances are alive
	pending      bool      // a round has been requested, and has not run yet

	sweepSequence uint64    // sweep will remove the counters with lower sequences; zero if not determined yet
	sweepAt       time.Time // when to remove these counters; zero if no other instance has left the table
}

// outage is a period in which the connection is up, and rounds fail.
type outage struct {
	start    time.Time     // zero if there is no outage
	logLimit ratelog.Limit // for the log message of divideByCalls
}

// logState limits log messages.
type logState struct {
	rounds        failureLog
	table         ratelog.Limit // for the log message of logRejected
	olderExists   bool          // logged: an older instance has the same name, so this instance stops
	youngerExists bool          // logged: a younger instance has the same name
}

// SharedConfig is the configuration of Shared.
type SharedConfig struct {
	Conn      *nats.Conn
	APIPrefix string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import
	Subjects  Subjects
	// Create creates the stream if it is missing. It is nil if the instance may not create the stream.
	Create func(context.Context) error
	// MaxOwners is the maximum number of instances that own lanes; the others are standbys.
	MaxOwners int
	// Format is the newest format of messages that this instance can read.
	Format int
	// Name is the operator's name for this instance. It is unique, and the same after a restart. If Name is empty, Host
	// becomes part of the instance's id.
	Name, Host string
	// Place identifies where the instance runs, such as a host and an address on which the instance listens. It is set
	// only if no other instance can run there, and used only if Name is empty. If two instances nevertheless have the
	// same place, the younger continues without a place.
	Place string
	// Locked is true if this instance has locked Place. Then any other instance of the table with this place is dead.
	Locked bool
	// Connected reports whether the connection is up. It must not block: the loop of every lane calls it. The default is
	// Conn.IsConnected, which blocks while a publish waits for a network that accepts no data.
	Connected func() bool
	// Keys make and verify the seals of messages. Without a key, messages have no seal, and instances trust all messages.
	Keys *message.Keys
	// Run calls Fail once, with ErrNameInUse, when this instance must stop. It may be nil.
	Fail func(error)
	Log  *slog.Logger
}

// waiter is an Acquire in progress.
type waiter struct {
	lease     chan *sharedLease // capacity 1
	onStandby func()            // called when another instance owns the lane
}

// release is a Release in progress.
type release struct {
	lease  *sharedLease
	cursor Cursor
	done   chan struct{} // closed by endReleased
}

// NewShared returns the leaser of one instance. The leaser does nothing before Run.
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
			conn: cfg.Conn, keys: cfg.Keys, Subjects: cfg.Subjects,
			api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix, Timeout: storeTimeout},
		},
		cfg: cfg, log: cfg.Log, wakeSignal: make(chan struct{}, 1),
		self: self{id: fmt.Sprintf("%s-%06x", token, rand.Uint32()&0xffffff), base: now, started: now.UnixNano()},
		state: state{
			waiters: make(map[string]*waiter), leases: make(map[string]*sharedLease), calls: make(map[string]lastCall),
			declinedLanes: make(map[string]bool),
		},
		view: view{liveness: liveness{sightings: make(map[string]sighting)}, table: Table{}.clone()},
	}
	if cfg.Name == "" {
		s.self.place = cfg.Place
	}
	s.callState.last.Store(int64(-livenessTimeout))
	s.callState.lastInformed.Store(int64(-stabilityTime))
	return s
}

// Instance returns the id of this instance: its name or host, and a random suffix for this run.
func (s *Shared) Instance() string { return s.self.id }

// Run takes part in the division of lanes until ctx ends, and then leaves.
func (s *Shared) Run(ctx context.Context) {
	calls, err := s.store.conn.Subscribe(s.store.Call, s.receive)
	if err != nil {
		s.log.Error("cannot receive the other instances' calls; this instance owns no lane", "err", err)
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
		woken := false
		select {
		case <-ctx.Done():
			continue
		case <-s.wakeSignal:
			woken = true
		case _, open := <-s.status:
			s.connectionChanged(open)
			woken = true
		case <-timer.C:
		}
		timer.Reset(s.turn(ctx, woken))
	}
	s.leave()
}

// Acquire waits until this instance owns the lane.
func (s *Shared) Acquire(ctx context.Context, lane string, onStandby func()) (Lease, error) {
	w := &waiter{lease: make(chan *sharedLease, 1), onStandby: sync.OnceFunc(onStandby)}
	s.mu.Lock()
	s.state.waiters[lane] = w
	s.mu.Unlock()
	s.wake()
	select {
	case l := <-w.lease:
		return l, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	delete(s.state.waiters, lane)
	s.mu.Unlock()
	select {
	case l := <-w.lease: // Run granted the lease while ctx ended; the caller must release it
		return l, nil
	default:
		return nil, ctx.Err()
	}
}

// Owner returns the instance that owns a lane.
func (s *Shared) Owner(lane string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.owners[lane]
}

// Probe makes Run read the table immediately.
func (s *Shared) Probe() { s.wake() }

// wake makes Run start a turn immediately.
func (s *Shared) wake() {
	select {
	case s.wakeSignal <- struct{}{}:
	default:
	}
}

func (s *Shared) now() instant { return s.at(time.Now()) }

// at returns the time t by the wall clock and by the monotonic clock. T must come from time.Now, in this process.
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
