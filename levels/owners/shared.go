package owners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/levels/leader"
)

// Shared divides the lanes evenly among the instances that are there, and takes over from those that die. See the
// package's documentation for how they agree.
type Shared struct {
	bucket bucket
	cfg    SharedConfig
	id     string // unique to this run
	base   time.Time
	log    *slog.Logger

	standing atomic.Pointer[standing]
	heard    atomic.Int64  // when another instance last called, as a duration since base
	asked    chan struct{} // one slot: there is something to do

	mu       sync.Mutex // guards what follows
	waiters  map[string]*waiter
	leases   map[string]*shared
	releases []*release
	leaving  bool
	owners   map[string]string // for Owner

	// What follows belongs to Run.
	read      uint64 // the last sequence read
	table     Table
	revision  uint64 // its sequence
	roster    roster
	stable    time.Time // since when the same instances are there
	rewritten bool      // the bucket is not the one we began with
	beats     uint64
	begun     time.Time // when the last round was
	look      time.Time // when the next one must be
	pending   bool      // something was asked that no round has seen to
	failing   complaint
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
	Log        *slog.Logger
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
	s := &Shared{
		bucket: bucket{conn: cfg.Conn, leader: leader.Leaders{Conn: cfg.Conn, API: cfg.APIPrefix}, Subjects: cfg.Subjects}, cfg: cfg, log: cfg.Log,
		id: fmt.Sprintf("%s-%06x", token, rand.Uint32()&0xffffff), base: time.Now(),
		asked: make(chan struct{}, 1), waiters: make(map[string]*waiter), leases: make(map[string]*shared),
		roster: roster{seen: make(map[string]sighting)}, table: Table{}.clone(),
	}
	s.heard.Store(int64(-lostAfter))
	return s
}

// Instance is what this instance is called among the others: its name and something that no other run of it has.
func (s *Shared) Instance() string { return s.id }

// Run takes part until ctx ends, then leaves.
func (s *Shared) Run(ctx context.Context) {
	calls, err := s.bucket.conn.Subscribe(s.bucket.Call, func(m *nats.Msg) {
		if string(m.Data) != s.id {
			s.heard.Store(int64(time.Since(s.base)))
			s.wake()
		}
	})
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
		case <-s.asked:
			asked = true
		case _, open := <-status:
			if !open {
				status = nil
			}
			s.doubt()
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
	case s.asked <- struct{}{}:
	default:
	}
}

func (s *Shared) now() instant { return s.at(time.Now()) }

func (s *Shared) at(t time.Time) instant { return instant{wall: t.Round(0), mono: t.Sub(s.base)} }

// doubt ends the confidence of an instance that is alone: it may have missed a call.
func (s *Shared) doubt() {
	if st := s.standing.Load(); st != nil && st.alone {
		s.standing.Store(nil)
	}
}

const (
	// roundPause keeps those who call all the time from costing more than this.
	roundPause = 2 * time.Millisecond
	// lookEvery is how often counters are looked at: the sooner a beat is seen, the sooner its absence is.
	lookEvery = beatEvery / 2
	// retryEvery is how soon a round that failed is tried again.
	retryEvery = 250 * time.Millisecond
	// offlineEvery is how often to look for a connection whose return was not announced.
	offlineEvery = 5 * time.Second
	// complainEvery is how often the log says the same.
	complainEvery = 10 * time.Second
)

// turn does what is to be done now, and returns when to come again at the latest.
func (s *Shared) turn(ctx context.Context, asked bool) time.Duration {
	now := time.Now()
	s.pending = s.pending || asked
	if st := s.standing.Load(); !s.pending && st != nil && st.alone && st.good(s.at(now), s.bucket.conn.IsConnected()) {
		s.standing.Store(&standing{since: s.at(now), alone: true})
		return signEvery
	}
	if soon := s.begun.Add(roundPause).Sub(now); soon > 0 {
		return soon
	}
	if !s.bucket.conn.IsConnected() {
		s.roster.failed()
		return offlineEvery // or when the connection is back
	}
	var err error
	if s.look.After(now) && s.read > 0 && !s.pending {
		err = s.follow(ctx, 0)
	} else {
		s.pending = false
		err = s.round(ctx, now)
		s.pending = s.pending || err != nil
	}
	if ctx.Err() != nil {
		return 0
	}
	s.complain(err)
	if err != nil {
		return retryEvery
	}
	if st := s.standing.Load(); st != nil && st.alone {
		return signEvery
	}
	return min(lookEvery, max(time.Until(s.look), 0))
}

// complaint remembers what was said.
type complaint struct {
	since, said time.Time
}

func (s *Shared) complain(err error) {
	c := &s.failing
	if err == nil || errors.Is(err, errConflict) { // others were faster ten times in a row; soon they are done
		if !c.said.IsZero() {
			s.log.Info("instances can agree again", "after", time.Since(c.since).Round(time.Millisecond))
		}
		*c = complaint{}
		return
	}
	now := time.Now()
	if c.since.IsZero() {
		c.since = now
	}
	if now.Sub(c.said) < complainEvery {
		return
	}
	c.said = now
	s.log.Warn("instances cannot agree who owns what; trying again", "err", err, "since", c.since.UTC())
}
