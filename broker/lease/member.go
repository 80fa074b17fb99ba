package lease

import (
	"cmp"
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

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/ratelog"
)

// Member is one of the instances of a broker. It takes part in the choice of the active instance. The package
// documentation has the protocol.
type Member struct {
	store      store
	cfg        Config
	log        *slog.Logger
	self       Instance  // only Run changes it: see checkIdentities
	base       time.Time // when this instance started
	wakeSignal chan struct{}

	grace     atomic.Pointer[grace]                   // nil: this instance must not act
	lostAt    atomic.Pointer[instant]                 // when the connection was lost; nil while it is up
	interrupt atomic.Pointer[context.CancelCauseFunc] // cancels the requests of the running turn
	silence   silence

	mu    sync.Mutex // guards state
	state state

	// Only Run uses the fields below.
	view     view
	beats    beats
	outage   outage
	logState logState
}

// state is what Run shares with the callers of the methods, and with the goroutine that receives calls.
type state struct {
	waiter  *waiter      // the Acquire in progress, or nil
	lease   *memberLease // nil unless this instance is active
	release *release     // the Release in progress, or nil
	active  string       // the active instance by the claim or, in an outage, by calls
	peers   map[string]caller
	asked   bool // an instance has asked who is alive, and this instance has not answered
}

// view is this instance's knowledge of the claim, and of the active instance.
type view struct {
	claim    Claim
	known    bool   // the claim was read or written; false at the start, and while nobody has a valid one
	sequence uint64 // sequence of the last message on the claim's subject; zero if there is none
	hidden   bool   // the last message on the subject is not the claim
	// since is the time from which on the active instance has shown no sign of life, although it could have: its claim
	// was first read then, its last call arrived, or a read succeeded again after a failure.
	since     time.Time
	everAlive bool      // the active instance has shown a sign of life since this instance first read its claim
	acted     bool      // the active instance has called that it acts
	gaveUp    bool      // it has called since then that it does not act
	readStart time.Time // the start of the last successful read; zero after a failure
	blindFrom time.Time // the last successful read, if all reads since then got no answer; otherwise zero
	vacant    time.Time // since when there is no live active instance; zero while there is one
}

// beats has what Run remembers between turns.
type beats struct {
	counter  uint64    // of this instance's calls
	nextAt   time.Time // when the next turn must begin
	calledAt time.Time // when this instance last called
	askedAt  time.Time // when this instance last asked who is alive
	// unableSince is the time since which this instance cannot work: see Config.Able. It is zero while it can.
	unableSince time.Time
}

// outage is a period in which the connection is up, and turns fail.
type outage struct {
	start    time.Time     // zero if there is no outage
	logLimit ratelog.Limit // for the log message of chooseByCalls
}

// logState limits log messages.
type logState struct {
	turns         failureLog
	claim         ratelog.Limit // for the log message about a rejected claim
	olderExists   bool          // logged: an older instance has the same name, so this instance stops
	youngerExists bool          // logged: a younger instance has the same name
}

// Config is the configuration of a Member.
type Config struct {
	Conn      *nats.Conn
	APIPrefix string // prefix of JetStream's API: "$JS.API", or that of a domain or an account's import
	Subjects  Subjects
	// Create creates the stream if it is missing. It is nil if the instance may not create the stream.
	Create func(context.Context) error
	// Format is the newest format of messages that this instance can read.
	Format int
	// Name is the operator's name for this instance. It is unique, and the same after a restart. If Name is empty, Host
	// becomes part of the instance's id.
	Name, Host string
	// Place identifies where the instance runs, such as a host and an address on which the instance listens. It is set
	// only if no other instance can run there, and used only if Name is empty. If two instances nevertheless have the
	// same place, the younger continues without a place.
	Place string
	// Locked is true if this instance has locked Place. Then any earlier instance with this place is dead.
	Locked bool
	// Able returns the reason why this instance could not work well as the active one, or nil. For a stand-by, it must
	// be stricter than for the active instance, so that a stand-by notices a common cause first. It must not block. If
	// Able is nil, the instance is always able.
	Able func(standby bool) error
	// Keys make and verify the seals of messages. Without a key, messages have no seal, and instances trust all messages.
	Keys *message.Keys
	// Run calls Fail once, with ErrNameInUse, when this instance must stop. It may be nil.
	Fail func(error)
	Log  *slog.Logger
}

// waiter is an Acquire in progress.
type waiter struct {
	lease     chan *memberLease // capacity 1
	onStandby func()            // called when another instance is active
}

// NewMember returns the leaser of one instance. It does nothing before Run.
func NewMember(cfg Config) *Member {
	if cfg.Able == nil {
		cfg.Able = func(bool) error { return nil }
	}
	token := strings.Map(func(r rune) rune {
		if r < '!' || r > '~' || strings.ContainsRune(".*>", r) {
			return '-'
		}
		return r
	}, cmp.Or(cfg.Name, cfg.Host))
	now := time.Now()
	m := &Member{
		store: store{
			conn: cfg.Conn, keys: cfg.Keys, Subjects: cfg.Subjects,
			api: jsapi.Client{Conn: cfg.Conn, API: cfg.APIPrefix, Timeout: storeTimeout},
		},
		cfg: cfg, log: cfg.Log, base: now, wakeSignal: make(chan struct{}, 1),
		self: Instance{
			ID:   fmt.Sprintf("%s-%06x", token, rand.Uint32()&0xffffff),
			Name: cfg.Name, Started: now.UnixNano(), Format: cfg.Format,
		},
		state: state{peers: make(map[string]caller)},
	}
	if cfg.Name == "" {
		m.self.Place = cfg.Place
	}
	return m
}

// Instance returns the id of this instance: its name or host, and a random suffix for this run.
func (m *Member) Instance() string { return m.self.ID }

// Run takes part in the choice of the active instance until ctx ends.
func (m *Member) Run(ctx context.Context) {
	calls, err := m.store.conn.Subscribe(m.store.call(), m.receive)
	if err == nil {
		defer func() { _ = calls.Unsubscribe() }() // fails only on a closed connection
		var presence *nats.Subscription
		if presence, err = m.store.conn.Subscribe(m.presence(m.self.ID), func(*nats.Msg) {}); err == nil {
			defer func() { _ = presence.Unsubscribe() }()
		}
	}
	if err != nil {
		m.log.Error("cannot receive the other instances' calls; this instance stands by", "err", err)
		<-ctx.Done()
		return
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { m.watchConnection(ctx) })
	watching.Go(func() { m.probe(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		woken := false
		select {
		case <-ctx.Done():
			continue
		case <-m.wakeSignal:
			woken = true
		case <-timer.C:
		}
		timer.Reset(m.turn(ctx, woken))
	}
	m.call(call{Left: true})
}

// Acquire waits until this instance is active.
func (m *Member) Acquire(ctx context.Context, onStandby func()) (Lease, error) {
	w := &waiter{lease: make(chan *memberLease, 1), onStandby: sync.OnceFunc(onStandby)}
	m.mu.Lock()
	m.state.waiter = w
	m.mu.Unlock()
	m.wake()
	select {
	case l := <-w.lease:
		return l, nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.waiter = nil
	select {
	case l := <-w.lease: // Run granted the lease while ctx ended; the caller must release it
		return l, nil
	default:
		return nil, ctx.Err()
	}
}

// Active returns the id of the active instance.
func (m *Member) Active() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.active
}

// Probe makes Run start a turn immediately.
func (m *Member) Probe() { m.wake() }

// wake makes Run start a turn immediately.
func (m *Member) wake() {
	select {
	case m.wakeSignal <- struct{}{}:
	default:
	}
}

func (m *Member) now() instant { return m.at(time.Now()) }

// at returns the time t by the wall clock and by the monotonic clock. T must come from time.Now, in this process.
func (m *Member) at(t time.Time) instant { return instant{wall: t.Round(0), mono: t.Sub(m.base)} }

// permitted reports whether this instance may act now, if it has a lease.
func (m *Member) permitted() bool { return m.grace.Load().permits(m.now(), m.lostAt.Load()) }

// watchConnection records when the connection is lost, until ctx ends. If the connection was lost for maxBlip, another
// instance may have taken over, so this instance does not act before its next successful beat.
func (m *Member) watchConnection(ctx context.Context) {
	status := m.store.conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer m.store.conn.RemoveStatusListener(status)
	for {
		if m.store.conn.IsConnected() {
			lost := m.lostAt.Load()
			if lost != nil && lost.elapsed(m.now()) >= maxBlip {
				m.grace.Store(nil)
			}
			m.lostAt.Store(nil)
		} else if m.lostAt.Load() == nil {
			m.lostAt.Store(new(m.now()))
		}
		if cancel := m.interrupt.Load(); cancel != nil {
			(*cancel)(errCutOff)
		}
		m.wake()
		select {
		case <-ctx.Done():
			return
		case _, open := <-status:
			if !open {
				m.lostAt.CompareAndSwap(nil, new(m.now()))
				return
			}
		}
	}
}

// failureLog logs an outage of the turns.
type failureLog struct {
	start    time.Time // time of the first failure; zero while turns succeed
	logLimit ratelog.Limit
}

// alertInterval is the interval at which the log reports a long outage.
const alertInterval = time.Minute

// report logs a failed turn at intervals, and the first successful turn after a logged failure.
func (f *failureLog) report(log *slog.Logger, err error) {
	if err == nil {
		if f.logLimit.Reset() {
			log.Info("instances agree on the active one again", "after", time.Since(f.start).Round(time.Millisecond))
		}
		f.start = time.Time{}
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if f.start.IsZero() {
		f.start = time.Now()
	}
	interval := ratelog.Interval
	if time.Since(f.start) > alertInterval {
		interval = alertInterval
	}
	if _, ok := f.logLimit.Allow(interval); ok {
		log.Warn("instances cannot agree on the active one; will retry", "err", err, "since", f.start.UTC())
	}
}
