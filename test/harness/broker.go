package harness

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// Levels are the levels of a test's broker whose configuration has none. The default ladder of a broker has 32 levels,
// whose idle lanes would take most of the processor time of the tests.
const Levels = "1s 5s 10s 1m 10m 1h"

// intakeDurations are the plain durations that tests publish on: the small numbers of each unit, and some larger ones.
// All 1,300 durations would take a fifth of the processor time of the tests.
var intakeDurations = slices.DeleteFunc(levels.PlainDurations(), func(duration string) bool {
	switch n := strings.TrimRight(duration, "mshdw"); n {
	case "15", "17", "20", "30", "45", "90":
		return false
	default:
		return len(n) > 1
	}
})

type Instance struct {
	t      testing.TB
	Broker *broker.Broker
	Links  broker.Links
	Cancel context.CancelFunc
	Done   chan error
	Ended  bool

	server *natstest.Server
	cfg    broker.Config
}

// Bubble runs f under fake time with a client of a broker of this configuration. See natstest.Bubble.
func Bubble(t *testing.T, cfg broker.Config, f func(t *testing.T, c *Client)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f(t, StartBroker(t, s, cfg).NewClient())
	})
}

// BubbleWithBroker is like Bubble, and also passes the broker.
func BubbleWithBroker(t *testing.T, cfg broker.Config, f func(t *testing.T, c *Client, b *Instance)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, c := Start(t, s, cfg)
		f(t, c, b)
	})
}

// StartBroker runs a broker on its own connections until the test ends. It returns when the broker is ready.
func StartBroker(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) *Instance {
	t.Helper()
	i := LaunchBroker(t, s, cfg, opts...)
	select {
	case <-i.Broker.Ready():
	case err := <-i.Done:
		t.Fatalf("the broker ended before it was ready: %v", err)
	}
	return i
}

// Start is like StartBroker, and also returns a client of the server.
func Start(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) (*Instance, *Client) {
	t.Helper()
	i := StartBroker(t, s, cfg, opts...)
	return i, i.NewClient()
}

// StartBrokers starts this number of instances, one after the other.
func StartBrokers(t testing.TB, s *natstest.Server, count int, cfg broker.Config) (all []*Instance) {
	t.Helper()
	for range count {
		all = append(all, StartBroker(t, s, cfg))
	}
	return all
}

// LaunchBroker is like StartBroker, but does not wait until the broker is ready.
func LaunchBroker(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) *Instance {
	t.Helper()
	cfg.Provision = true
	return LaunchVerifying(t, s, cfg, opts...)
}

// LaunchVerifying is like LaunchBroker, but the broker creates no streams unless Provision is set.
func LaunchVerifying(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) *Instance {
	t.Helper()
	given := cfg
	cfg.Leaser = leaserOf(cfg.Leaser)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	if len(cfg.Ladder.Levels()) == 0 {
		cfg.Ladder = Ladder(t, Levels)
	}
	if cfg.IntakeDurations == nil {
		cfg.IntakeDurations = intakeDurations
	}
	dial := func(name string, more ...nats.Option) *nats.Conn {
		return s.Connect(slices.Concat([]nats.Option{nats.Name(name)}, more, opts)...)
	}
	links := broker.Links{
		Read: dial("read"), Write: dial("write", nats.ReconnectBufSize(-1)),
		Deliver: dial("deliver", nats.ReconnectBufSize(-1)), Control: dial("control", nats.ReconnectBufSize(-1)),
	}
	b, err := broker.New(links, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := &Instance{
		t: t, Broker: b, Links: links, Cancel: cancel, Done: make(chan error, 1), server: s, cfg: given,
	}
	go func() { i.Done <- b.Run(ctx) }()
	t.Cleanup(i.Stop)
	return i
}

func (i *Instance) NewClient() *Client {
	i.t.Helper()
	return NewClient(i.t, i.server)
}

// Replace is StartBroker with the server and configuration of the instance. It does not stop the instance.
func (i *Instance) Replace() *Instance {
	i.t.Helper()
	return StartBroker(i.t, i.server, i.cfg)
}

// Stop stops the broker cleanly, unless it was stopped or crashed before.
func (i *Instance) Stop() {
	i.t.Helper()
	if i.Ended {
		return
	}
	i.Ended = true
	i.Cancel()
	if err := <-i.Done; err != nil {
		i.t.Errorf("Run ended with %v, want nil after a clean stop", err)
	}
	i.Close()
}

// Crash closes all connections, so that the broker can no longer acknowledge, commit or deliver. Then it ends the
// broker.
func (i *Instance) Crash() {
	i.t.Helper()
	i.Ended = true
	i.Close()
	i.Cancel()
	<-i.Done
}

func (i *Instance) Close() {
	for _, nc := range []*nats.Conn{i.Links.Read, i.Links.Write, i.Links.Deliver, i.Links.Control} {
		nc.Close()
	}
}

func Ladder(t testing.TB, spec string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(spec)
	if err != nil {
		t.Fatalf("ladder %q: %v", spec, err)
	}
	return l
}
