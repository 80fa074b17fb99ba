package lease

import (
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
	"delaybroker/broker/ratelog"
)

// Shared divides the lanes evenly among the instances that are there, and takes over from those that die. See the
// package's documentation for how they agree.
type Shared struct {
	bucket  bucket
	cfg     SharedConfig
	id      string // unique to this run
	base    time.Time
	started int64 // base, as nanoseconds since 1970
	log     *slog.Logger

	standing atomic.Pointer[standing]
	heard    atomic.Int64  // when another instance last called, as a duration since base
	asking   atomic.Bool   // and wanted to know who lives
	knower   atomic.Int64  // when one last called that knows the table, likewise
	todo     chan struct{} // one slot: there is something to do

	mu       sync.Mutex // guards what follows
	waiters  map[string]*waiter
	leases   map[string]*shared
	releases []*release
	leaving  bool
	owners   map[string]string // for Owner
	spoken   map[string]spoken // what others said last, lately

	// What follows belongs to Run.
	place     string // see SharedConfig
	table     Table  // the last good one
	known     bool   // it was read, or founded
	last      uint64 // the sequence of what is stored as the table, zero when nothing is
	garbled   bool   // that is not the last good one
	rewritten bool   // others may own lanes that are in no table
	roster    roster
	stable    time.Time // since when the same instances are there
	beats     uint64
	stored    uint64    // the sequence of our last counter
	begun     time.Time // when the last round was
	look      time.Time // when the next one must be
	glanced   time.Time // when an instance that is alone last looked
	asked     time.Time // when it was last asked who lives
	pending   bool      // something was asked that no round has seen to

	sweepBelow uint64        // counters stored below are of those who are gone; zero when that is not known yet
	sweepAt    time.Time     // when they are removed; zero when none are to be
	failing    time.Time     // since when rounds are in vain, zero when they are not
	alerted    ratelog.Limit // of saying that we go on without the bucket
	rejected   ratelog.Limit // of saying that something else is stored as the table
	namesake   bool          // an elder instance has our name, and we stop
	elder      bool          // a younger one has

	disagreeing  time.Time     // since when rounds fail, zero when they do not
	disagreement ratelog.Limit // of saying so
}

// SharedConfig is what Shared needs to know.
type SharedConfig struct {
	Conn      *nats.Conn
	APIPrefix string // "$JS.API" unless a domain or an import says otherwise
	Subjects  Subjects
	// Create makes the stream when it is not there. Nil where that is not allowed.
	Create func(context.Context) error
	// MaxOwners is how many instances own lanes; others stand by.
	MaxOwners int
	// Name is what the operator calls this instance, the same after a restart, and no other instance. Empty means no
	// such name. Host is what it is called then.
	Name, Host string
	// Place is where it runs, such as a host and an address it listens on, if no other instance can run there; used
	// without a Name. Two that have it all the same notice, and the younger goes on without.
	Place string
	// Locked says that Place is locked: whoever else is entered as running there is dead.
	Locked bool
	// Connected reports whether the connection is up, without waiting for anything: every lane's loop asks. Nil asks Conn,
	// which answers under a lock that a publish holds while the network takes nothing.
	Connected func() bool
	// Seal proves what we write. Nil believes everything, and seals nothing.
	Seal Sealer
	// Fail is called once when this instance must stop, with an ErrNamesake. It may be nil.
	Fail func(error)
	Log  *slog.Logger
}

// waiter is an Acquire underway.
type waiter struct {
	got     chan *shared // one slot
	waiting func()
}

// release is a Release underway.
type release struct {
	lease *shared
	at    Cursor
	done  chan struct{} // closed when others can see it
}

// NewShared makes the ownership of one instance. Don't forget to Run it.
func NewShared(cfg SharedConfig) *Shared {
	if cfg.Connected == nil {
		cfg.Connected = cfg.Conn.IsConnected
	}
	name := cfg.Name
	if name == "" {
		name = cfg.Host
	}
	token := strings.Map(func(r rune) rune {
		if r < '!' || r > '~' || strings.ContainsRune(".*>", r) {
			return '-'
		}
		return r
	}, name)
	now := time.Now()
	s := &Shared{
		bucket: bucket{
			conn: cfg.Conn, api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix}, seal: cfg.Seal, Subjects: cfg.Subjects,
		},
		cfg: cfg, log: cfg.Log, id: fmt.Sprintf("%s-%06x", token, rand.Uint32()&0xffffff), base: now, started: now.UnixNano(),
		todo: make(chan struct{}, 1), waiters: make(map[string]*waiter), leases: make(map[string]*shared),
		spoken: make(map[string]spoken), roster: roster{seen: make(map[string]sighting)}, table: Table{}.clone(),
	}
	if cfg.Name == "" {
		s.place = cfg.Place
	}
	s.heard.Store(int64(-lostAfter))
	s.knower.Store(int64(-stableAfter))
	return s
}

// Instance is what this instance is called among the others: its name and something that no other run of it has.
func (s *Shared) Instance() string { return s.id }

// Run takes part until ctx ends, then leaves.
func (s *Shared) Run(ctx context.Context) {
	calls, err := s.bucket.conn.Subscribe(s.bucket.Call, s.hear)
	if err != nil {
		s.log.Error("cannot hear other instances, and own nothing", "err", err)
		<-ctx.Done()
		return
	}
	defer func() { _ = calls.Unsubscribe() }() // it fails when the connection is closed
	status := s.bucket.conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer s.bucket.conn.RemoveStatusListener(status)
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
		case _, open := <-status:
			if !open {
				status = nil
			}
			s.mistrust()
			asked = true
		case <-timer.C:
		}
		timer.Reset(s.turn(ctx, asked))
	}
	s.leave()
}

// Acquire waits until the lane is ours.
func (s *Shared) Acquire(ctx context.Context, lane string, waiting func()) (Lease, error) {
	w := &waiter{got: make(chan *shared, 1), waiting: sync.OnceFunc(waiting)}
	s.mu.Lock()
	s.waiters[lane] = w
	s.mu.Unlock()
	s.wake()
	select {
	case l := <-w.got:
		return l, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	delete(s.waiters, lane)
	s.mu.Unlock()
	select {
	case l := <-w.got: // at the last moment; the caller releases it
		return l, nil
	default:
		return nil, ctx.Err()
	}
}

// Owner names the instance that owns a lane.
func (s *Shared) Owner(lane string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[lane]
}

// Probe looks at the table now.
func (s *Shared) Probe() { s.wake() }

// release is for leases.
func (s *Shared) release(ctx context.Context, l *shared, at Cursor) error {
	r := &release{lease: l, at: at, done: make(chan struct{})}
	s.mu.Lock()
	if s.leases[l.lane] != l {
		s.mu.Unlock()
		return nil
	}
	select {
	case <-l.done:
	default:
		s.leaving = true // nobody asked for it: this instance is about to stop
	}
	s.releases = append(s.releases, r)
	s.mu.Unlock()
	s.wake()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("tell other instances that %s is free: %w; they take over within seconds", l.lane, ctx.Err())
	}
}

func (s *Shared) wake() {
	select {
	case s.todo <- struct{}{}:
	default:
	}
}

func (s *Shared) now() instant { return s.at(time.Now()) }

func (s *Shared) at(t time.Time) instant { return instant{wall: t.Round(0), mono: t.Sub(s.base)} }

// mistrust ends the confidence of an instance that is alone: its connection was cut, and it may have missed a call.
func (s *Shared) mistrust() {
	if st := s.standing.Load(); st != nil && st.alone {
		s.standing.Store(nil)
	}
}
