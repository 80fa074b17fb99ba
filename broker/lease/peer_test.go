package lease

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// peer is an instance whose workers only hold their leases.
type peer struct {
	*Shared
	t     *testing.T
	nc    *nats.Conn
	stop  func() // stops the instance cleanly
	crash func() // stops the instance without a connection

	mu              sync.Mutex // guards the fields below
	leases          map[string]Lease
	readyLanes      map[string]bool
	stuckLanes      map[string]bool // their workers receive no ticks
	lostLeases      int             // number of leases that ended while the worker ran
	releaseSequence uint64          // the cursor at which the workers release
}

type option func(*SharedConfig)

func withName(name string) option { return func(c *SharedConfig) { c.Name = name } }

func withCreate(js jetstream.JetStream) option {
	return func(c *SharedConfig) { c.Create = func(context.Context) error { return makeStream(js) } }
}

// keys are the keys of all instances.
var keys = message.NewKeys([]string{"a secret of sixteen bytes"}, time.Unix(1, 0))

func withKeys(c *SharedConfig) { c.Keys = keys }

// withoutCalls makes an instance that neither reaches other instances by calls nor receives their calls, as across a
// link that is down.
func withoutCalls(c *SharedConfig) { c.Subjects.Call = nats.NewInbox() }

func withPlace(name string) option { return func(c *SharedConfig) { c.Place = name } }

func withLockedPlace(name string) option {
	return func(c *SharedConfig) { c.Place, c.Locked = name, true }
}

func withFail(f func(error)) option { return func(c *SharedConfig) { c.Fail = f } }

func startPeer(t *testing.T, s *natstest.Server, lanes []string, options ...option) *peer {
	t.Helper()
	cfg := SharedConfig{
		Conn: s.Connect(nats.ReconnectBufSize(-1)), APIPrefix: "$JS.API", Subjects: testSubjects, MaxOwners: 3, Host: "h",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, o := range options {
		o(&cfg)
	}
	nc := cfg.Conn
	p := &peer{Shared: NewShared(cfg), t: t, nc: nc, leases: make(map[string]Lease), readyLanes: make(map[string]bool),
		stuckLanes: make(map[string]bool)}
	working, stop := context.WithCancel(context.Background())
	base, end := context.WithCancel(context.Background())
	var loops, run sync.WaitGroup
	for _, lane := range lanes {
		loops.Go(func() { p.own(working, lane) })
	}
	run.Go(func() { p.Run(base) })
	p.stop = sync.OnceFunc(func() {
		stop()
		loops.Wait()
		end()
		run.Wait()
		nc.Close()
	})
	p.crash = func() { nc.Close(); p.stop() }
	t.Cleanup(p.stop)
	return p
}

// own is the worker of a lane: it acquires the lane again after each end of the lease.
func (p *peer) own(ctx context.Context, lane string) {
	for {
		lease, err := p.Acquire(ctx, lane, func() { p.mu.Lock(); p.readyLanes[lane] = true; p.mu.Unlock() })
		if err != nil {
			return
		}
		p.mu.Lock()
		p.leases[lane], p.readyLanes[lane] = lease, true
		p.mu.Unlock()
		for working := true; working; {
			p.mu.Lock()
			ticks := lease.Ticks()
			if p.stuckLanes[lane] {
				ticks = nil
			}
			p.mu.Unlock()
			select {
			case <-ticks:
			case <-lease.Done():
				working = false
			case <-ctx.Done():
				working = false
			}
		}
		p.mu.Lock()
		stuck := p.stuckLanes[lane]
		if ctx.Err() == nil && !lease.Held() {
			p.lostLeases++
		}
		p.mu.Unlock()
		if stuck { // a stuck worker does not release its lease, and acquires no other
			<-ctx.Done()
			return
		}
		p.mu.Lock()
		delete(p.leases, lane)
		cursor := Cursor{Next: p.releaseSequence}
		p.mu.Unlock()
		releaseCtx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := lease.Release(releaseCtx, cursor); err != nil && p.nc.IsConnected() {
			p.t.Errorf("release %s: %v", lane, err)
		}
		cancel()
	}
}

// holds returns the lanes that a peer may act on.
func (p *peer) holds() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lanes []string
	for lane, l := range p.leases {
		if l.Held() {
			lanes = append(lanes, lane)
		}
	}
	slices.Sort(lanes)
	return lanes
}

func (p *peer) currentLeases() map[string]Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.leases)
}

func (p *peer) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lostLeases
}
