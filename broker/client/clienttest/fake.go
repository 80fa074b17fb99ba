package clienttest

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// A Fake is a broker with its streams and a clock that stands still until the test moves it. It is safe for concurrent
// use.
type Fake struct {
	client *client.Client
	policy message.Policy
	ladder levels.Ladder
	whole  map[string]bool // the durations that the intake takes below the levels' root

	mu       sync.Mutex // guards what follows; not held while a handler runs
	now      time.Time
	streams  map[string]*stream
	timers   map[string]entry // by subject
	requests []Request
	pending  []Request // in the order of their due times, then of acceptance
	letters  []Letter
	handlers []handler
	failure  error
}

// A Request is a message that was accepted.
type Request struct {
	Stream   string
	Sequence uint64
	Subject  string
	ID       string // its Delay-Id
	Target   string
	Due      time.Time
	Header   nats.Header // as it was published
	Body     []byte

	as message.Request
}

// A Letter is a request that became a dead letter.
type Letter struct {
	Subject string
	Code    message.Code
	Reason  string
}

type handler struct {
	pattern string
	handle  func(*nats.Msg)
}

// New returns a broker with the settings that a client with this configuration knows. Its clock begins at the year
// 2000, as that of testing/synctest.
func New(t testing.TB, cfg client.Config) *Fake {
	t.Helper()
	return NewAt(t, cfg, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// NewAt is New with another beginning.
func NewAt(t testing.TB, cfg client.Config, now time.Time) *Fake {
	t.Helper()
	f := &Fake{now: now, streams: make(map[string]*stream), timers: make(map[string]entry), whole: make(map[string]bool)}
	c, err := client.NewOn(store{f}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	names, err := message.NewNames(cmp.Or(cfg.Prefix, message.DefaultPrefix))
	if err != nil {
		t.Fatal(err)
	}
	if f.ladder, err = levels.Parse(cmp.Or(cfg.Levels, "default")); err != nil {
		t.Fatal(err)
	}
	for _, name := range levels.Whole() {
		f.whole[name] = true
	}
	attempts := cmp.Or(cfg.Attempts, client.DefaultAttempts)
	f.client, f.policy = c, message.Policy{
		Names: names, Targets: cfg.Targets, MaxDelay: cmp.Or(cfg.MaxDelay, client.DefaultMaxDelay),
		Attempts: func(string) int { return attempts },
	}
	return f
}

// Client is a client of this broker.
func (f *Fake) Client() *client.Client { return f.client }

// Now is the time.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Handle calls handle for every message that arrives at a target that matches the pattern, in the order of arrival. It
// is called by Advance, with the clock at the due time, and may ask for further delays.
func (f *Fake) Handle(pattern string, handle func(*nats.Msg)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers = append(f.handlers, handler{pattern, handle})
}

// Advance moves the clock, and returns what has arrived in the meantime, in the order of the due times, and of
// acceptance where those are equal. Advance(0) delivers what was due already.
func (f *Fake) Advance(d time.Duration) []*nats.Msg {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.now.Add(max(d, 0))
	var arrived []*nats.Msg
	for len(f.pending) > 0 && !f.pending[0].Due.After(end) {
		next := f.pending[0]
		f.pending = slices.Delete(f.pending, 0, 1)
		delete(f.streams[next.Stream].held, next.Sequence)
		if next.Due.After(f.now) {
			f.now = next.Due
		}
		if !f.fired(next) {
			continue
		}
		m := &nats.Msg{Subject: next.Target, Header: nats.Header(next.as.TargetHeader()), Data: next.Body}
		arrived = append(arrived, m)
		f.handle(m)
	}
	if end.After(f.now) {
		f.now = end
	}
	return arrived
}

// handle releases the lock while handlers run.
func (f *Fake) handle(m *nats.Msg) {
	handlers := slices.Clone(f.handlers)
	f.mu.Unlock()
	defer f.mu.Lock()
	for _, h := range handlers {
		if message.Match(h.pattern, m.Subject) {
			h.handle(m)
		}
	}
}

// Fail makes every publish fail with an error, until it is called with nil. The client explains it as it would explain
// that of a server: nats.ErrTimeout becomes client.ErrUnanswered. Nothing is stored.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = err
}

// Requests are all messages that were accepted, in that order.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Pending are those that have not arrived, in the order in which they will.
func (f *Fake) Pending() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pending)
}

// Letters are the dead letters. A client's own checks leave few requests that can become one.
func (f *Fake) Letters() []Letter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.letters)
}
