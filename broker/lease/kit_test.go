package lease

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// maxHandover is the maximum time in which another instance becomes active after a release: some turns, each after a
// pause.
const maxHandover = 20 * time.Millisecond

var testSubjects = Subjects{Stream: "OWNERS", Claim: "sys.owners.claim", Calls: "ctl.owners."}

// keys are the keys of all instances.
var keys = message.NewKeys([]string{"a secret of sixteen bytes"})

// peer is an instance that holds its lease, and does nothing else.
type peer struct {
	*Member
	t     *testing.T
	nc    *nats.Conn
	stop  func() // stops the instance cleanly
	crash func() // stops the instance without a connection

	mu      sync.Mutex // guards the fields below
	lease   Lease
	grants  int
	losses  int  // number of leases that ended although the instance did not stop
	ready   bool // it is active, or stands by
	cursor  uint64
	holding bool // it does not release when it is asked to
}

type option func(*Config)

func withName(name string) option   { return func(c *Config) { c.Name = name } }
func withFormat(format int) option  { return func(c *Config) { c.Format = format } }
func withPlace(name string) option  { return func(c *Config) { c.Place = name } }
func withFail(f func(error)) option { return func(c *Config) { c.Fail = f } }

func withLockedPlace(name string) option {
	return func(c *Config) { c.Place, c.Locked = name, true }
}

func withAble(f func(bool) error) option { return func(c *Config) { c.Able = f } }

func withCreate(js jetstream.JetStream) option {
	return func(c *Config) { c.Create = func(context.Context) error { return makeStream(js) } }
}

// withoutCalls makes an instance that neither reaches other instances by calls nor receives their calls, as across a
// link that is down.
func withoutCalls(c *Config) { c.Subjects.Calls = nats.NewInbox() + "." }

func startPeer(t *testing.T, s *natstest.Server, options ...option) *peer {
	t.Helper()
	cfg := Config{
		Conn: s.Connect(nats.ReconnectBufSize(-1)), APIPrefix: "$JS.API", Subjects: testSubjects, Host: "h", Keys: keys,
		Format: 1, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, o := range options {
		o(&cfg)
	}
	p := &peer{Member: NewMember(cfg), t: t, nc: cfg.Conn}
	working, stop := context.WithCancel(context.Background())
	base, end := context.WithCancel(context.Background())
	var holding, run sync.WaitGroup
	holding.Go(func() {
		for p.hold(working) {
		}
	})
	run.Go(func() { p.Run(base) })
	p.stop = sync.OnceFunc(func() {
		stop()
		holding.Wait()
		end()
		run.Wait()
		p.nc.Close()
	})
	p.crash = func() { p.nc.Close(); p.stop() }
	t.Cleanup(p.stop)
	return p
}

// hold waits until the instance is active, and holds the lease until it ends. It returns false when ctx has ended.
func (p *peer) hold(ctx context.Context) bool {
	l, err := p.Acquire(ctx, func() { p.mu.Lock(); p.ready = true; p.mu.Unlock() })
	if err != nil {
		return false
	}
	p.mu.Lock()
	p.lease, p.ready = l, true
	p.grants++
	p.mu.Unlock()
	select {
	case <-l.Done():
	case <-ctx.Done():
	}
	p.mu.Lock()
	if ctx.Err() == nil {
		p.losses++
	}
	stuck, cursor := p.holding, p.cursor
	p.mu.Unlock()
	if stuck {
		<-ctx.Done()
	}
	releaseCtx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := l.Release(releaseCtx, map[string]Cursor{"L": {Next: cursor}}); err != nil && p.nc.IsConnected() {
		p.t.Errorf("release: %v", err)
	}
	return ctx.Err() == nil
}

// newest returns the newest lease of the peer.
func (p *peer) newest() Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease
}

// holds reports whether the peer may act now.
func (p *peer) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease != nil && p.lease.Held()
}

// kept returns how many leases the peer was granted, and how many of them it has lost.
func (p *peer) kept() (grants, losses int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants, p.losses
}

func (p *peer) setCursor(next uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursor = next
}

// active returns the index of the peer that may act, -1 for none, and -2 for several.
func active(peers ...*peer) int {
	synctest.Wait()
	found := -1
	for n, p := range peers {
		switch {
		case !p.holds():
		case found >= 0:
			return -2
		default:
			found = n
		}
	}
	return found
}

// check fails the test unless exactly one peer is active; want is its index, or -1 for none.
func check(t *testing.T, want int, peers ...*peer) {
	t.Helper()
	if got := active(peers...); got != want {
		t.Fatalf("peer %d is active, want %d (-1: none, -2: several)", got, want)
	}
}

// checkFor calls check every 100 ms, for a duration.
func checkFor(t *testing.T, duration time.Duration, want int, peers ...*peer) {
	t.Helper()
	for range int(duration / (100 * time.Millisecond)) {
		check(t, want, peers...)
		time.Sleep(100 * time.Millisecond)
	}
}

// await waits until the peer with the index want is the only active one, and returns the time for which it waited. It
// fails after limit.
func await(t *testing.T, limit time.Duration, want int, peers ...*peer) time.Duration {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		took := time.Since(start)
		if active(peers...) == want {
			return took
		}
		if took > limit {
			t.Fatalf("after %s, peer %d is active, want %d", took, active(peers...), want)
		}
	}
}

// checkKept fails unless the peer still has its first lease.
func checkKept(t *testing.T, p *peer) {
	t.Helper()
	if grants, losses := p.kept(); grants != 1 || losses != 0 {
		t.Errorf("the instance was granted %d leases, and lost %d; want 1 and 0", grants, losses)
	}
}

// mutableAPI is a proxy to JetStream's API. While it is true, the proxy does not answer, like a stream without a
// leader. Writes are not proxied, and fail like those into a stream without a leader if silent is set.
type mutableAPI struct{ atomic.Bool }

func (m *mutableAPI) option(t *testing.T, s *natstest.Server) option {
	nc := s.Connect()
	if _, err := nc.Subscribe("mutable.>", func(q *nats.Msg) {
		if m.Load() {
			return
		}
		_ = nc.PublishMsg(&nats.Msg{Subject: "$JS.API" + q.Subject[len("mutable"):], Reply: q.Reply, Data: q.Data})
	}); err != nil {
		t.Fatal(err)
	}
	natstest.Flush(t, nc)
	return func(c *Config) { c.APIPrefix = "mutable" }
}

// setFull makes the stream full, by a limit of its present size, or removes the limit.
func setFull(t *testing.T, js jetstream.JetStream, full bool) {
	t.Helper()
	st, err := js.Stream(context.Background(), testSubjects.Stream)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Reconfigure(t, js, testSubjects.Stream, func(cfg *jetstream.StreamConfig) {
		cfg.Discard, cfg.MaxBytes = jetstream.DiscardNew, -1
		if full {
			cfg.MaxBytes = int64(max(st.CachedInfo().State.Bytes/2, 1))
		}
	})
}

func makeStream(js jetstream.JetStream) error {
	_, err := js.CreateStream(context.Background(),
		jetstream.StreamConfig{Name: testSubjects.Stream, Subjects: []string{"sys.owners.>"}, MaxMsgsPerSubject: 1})
	return err
}

// withStream runs f in a bubble, with a server that has the instances' stream.
func withStream(t *testing.T, f func(t *testing.T, s *natstest.Server, js jetstream.JetStream)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		js := s.JetStream(s.Connect())
		if err := makeStream(js); err != nil {
			t.Fatal(err)
		}
		f(t, s, js)
	})
}

// lastSequence returns the last sequence of the stream.
func lastSequence(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	st, err := js.Stream(context.Background(), testSubjects.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.LastSeq
}

// gate dials a server. While the gate is shut, its connections are broken and cannot be dialed.
type gate struct {
	*natstest.Server
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *gate) Dial(network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, net.ErrClosed
	}
	c, err := g.Server.Dial(network, address)
	g.conns = append(g.conns, c)
	return c, err
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, c := range g.conns {
		if shut && c != nil {
			_ = c.Close() // like a pulled cable
		}
	}
}

func withGate(g *gate) option {
	return func(c *Config) {
		c.Conn.Close()
		c.Conn = g.Connect(nats.ReconnectBufSize(-1), nats.SetCustomDialer(g), nats.ReconnectWait(100*time.Millisecond))
	}
}
