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
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

// A Fake is a fake broker with its streams. Only Advance moves its clock. A Fake is safe for concurrent use.
type Fake struct {
	client *client.Client
	policy message.Policy
	ladder levels.Ladder

	mu       sync.Mutex // guards the fields below; not held while a handler runs
	now      time.Time
	streams  map[string]*stream
	timers   map[string]storedEntry // by subject
	requests []Publication          // in the order of acceptance
	pending  []Publication          // sorted by due time, then by acceptance
	letters  []Letter
	handlers []handler
	failure  error // see Fail
	refusals []refusal
}

// A Publication is a message for a target. The client published it, or the fake wrote it, such as the next round of a
// series.
type Publication struct {
	Stream   string
	Sequence uint64
	Subject  string
	ID       string // its Delay-Id
	Target   string
	Due      time.Time
	Header   nats.Header // as stored, with the headers for the broker
	Body     []byte

	parsed entry.Pending
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

// New returns a fake broker. Its clock starts at the beginning of the year 2000, as in testing/synctest.
func New(t testing.TB, cfg client.Config) *Fake {
	t.Helper()
	return NewAt(t, cfg, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// NewAt returns a fake broker whose clock starts at now.
func NewAt(t testing.TB, cfg client.Config, now time.Time) *Fake {
	t.Helper()
	f := &Fake{
		now: now, streams: make(map[string]*stream), timers: make(map[string]storedEntry),
	}
	c, err := client.NewOn(store{f}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	names, _ := message.NewNames(cmp.Or(cfg.Prefix, message.DefaultPrefix)) // NewOn has checked the configuration
	f.ladder, _ = levels.Parse(cmp.Or(cfg.Levels, "default"))
	attempts := cmp.Or(cfg.Attempts, client.DefaultAttempts)
	f.client, f.policy = c, message.Policy{
		Names: names, Keys: message.NewKeys([]string{"the secret of the fake broker"}), Targets: cfg.Targets,
		MaxDelay: cmp.Or(cfg.MaxDelay, client.DefaultMaxDelay),
		Attempts: func(string) int { return attempts },
	}
	return f
}

// Client returns a client of this broker.
func (f *Fake) Client() *client.Client { return f.client }

// Now returns the time of the fake's clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Handle registers a handler for the messages to targets that match the pattern. Advance calls the handler in the order
// of delivery. The clock is then at the due time or, for a message that was already due when it was stored, later. The
// handler may publish further delayed messages.
func (f *Fake) Handle(pattern string, handle func(*nats.Msg)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers = append(f.handlers, handler{pattern, handle})
}

// Advance moves the clock by d, and returns the messages that it delivers, in the order of delivery. A negative d is
// zero. Advance(0) delivers the messages that are already due.
func (f *Fake) Advance(d time.Duration) []*nats.Msg {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.now.Add(max(d, 0))
	var arrivals []*nats.Msg
	for len(f.pending) > 0 && !f.pending[0].Due.After(end) {
		next := f.pending[0]
		f.pending = slices.Delete(f.pending, 0, 1)
		delete(f.streams[next.Stream].messages, next.Sequence)
		if next.Due.After(f.now) {
			f.now = next.Due
		}
		if !f.fire(next) {
			continue
		}
		m := &nats.Msg{Subject: next.Target, Header: nats.Header(next.parsed.TargetHeader()), Data: next.Body}
		arrivals = append(arrivals, m)
		f.handle(m)
	}
	if end.After(f.now) {
		f.now = end
	}
	return arrivals
}

// handle calls the handlers of a message. It releases the lock while they run.
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

// Fail makes every publish, and every call of the client that needs a running broker, fail with err. The fake then
// stores no message. Reads still succeed. Fail(nil) ends the failures. The client converts err like the error of a real
// server: nats.ErrTimeout becomes client.ErrUnanswered.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = err
}

// Requests returns the messages that the client published, in the order of acceptance, without cancels and bad
// requests.
func (f *Fake) Requests() []Publication {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Pending returns the undelivered messages, in the order of their delivery.
func (f *Fake) Pending() []Publication {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pending)
}

// Letters returns the dead letters. Most requests that would become dead letters fail at the call.
func (f *Fake) Letters() []Letter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.letters)
}
