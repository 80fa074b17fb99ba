package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// The window of a kit.
const (
	defaultWindow      = 32 << 10
	defaultWindowBytes = 32 << 20
)

// kit is a deliverer, and an account with streams and subscribers.
type kit struct {
	*Deliverer
	t    testing.TB
	end  func()     // ends the deliverer and its inbox, without waiting
	stop func()     // ends the deliverer and its inbox, and waits until both have ended
	nc   *nats.Conn // the connection of the other clients
	js   jetstream.JetStream
}

// newKit starts a deliverer. Opts are the options of its connection.
func newKit(t testing.TB, s *natstest.Server, opts ...nats.Option) *kit {
	t.Helper()
	k := &kit{t: t, nc: s.Connect(nats.Name("others"))}
	k.js = s.JetStream(k.nc)
	own, control := s.Connect(append(opts, nats.ReconnectBufSize(-1))...), s.Connect()
	box, err := acks.New(own, "_INBOX")
	if err != nil {
		t.Fatal(err)
	}
	k.Deliverer = New(box, jsapi.Client{Conn: control, API: "$JS.API"},
		Config{
			ReplyTimeout: replyTimeout, Counts: NewCounts(nil), Window: defaultWindow, WindowBytes: defaultWindowBytes,
			Log: slog.New(slog.DiscardHandler),
		})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { box.Run(ctx) })
	running.Go(func() { k.Run(ctx) })
	k.end, k.stop = cancel, func() { cancel(); running.Wait() }
	t.Cleanup(k.stop)
	return k
}

func (k *kit) stream(cfg jetstream.StreamConfig) {
	k.t.Helper()
	if _, err := k.js.CreateStream(context.Background(), cfg); err != nil {
		k.t.Fatalf("create stream %s: %v", cfg.Name, err)
	}
}

func (k *kit) stored(stream string) uint64 {
	k.t.Helper()
	s, err := k.js.Stream(context.Background(), stream)
	if err != nil {
		k.t.Fatalf("stream %s: %v", stream, err)
	}
	return s.CachedInfo().State.Msgs
}

// subscribe counts the messages that a core subscriber gets, and calls handle with each, unless handle is nil.
func (k *kit) subscribe(subject string, handle func(*nats.Msg)) *count {
	k.t.Helper()
	n := &count{}
	if _, err := k.nc.Subscribe(subject, func(m *nats.Msg) {
		n.add()
		if handle != nil {
			handle(m)
		}
	}); err != nil {
		k.t.Fatal(err)
	}
	natstest.Flush(k.t, k.nc)
	return n
}

type count struct {
	mu sync.Mutex
	n  int
}

func (c *count) add() { c.mu.Lock(); c.n++; c.mu.Unlock() }

func (c *count) get() int { c.mu.Lock(); defer c.mu.Unlock(); return c.n }

// watched collects the results of one delivery.
type watched struct {
	mu      sync.Mutex // guards results and elapsed
	results []Result
	elapsed time.Duration
	start   time.Time
}

func (k *kit) send(target string, mode message.Mode) *watched {
	return k.deliver(Message{Target: target, Mode: mode, Data: []byte("x")})
}

func (k *kit) deliver(m Message) *watched {
	v := &watched{start: time.Now()}
	k.Deliver(m, func(r Result) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.results, v.elapsed = append(v.results, r), time.Since(v.start)
	})
	return v
}

// check checks that the delivery has exactly one result, and that the result came exactly at the elapsed time. Want is
// "delivered", "refused <code>" or "unknown: <error>".
func (v *watched) check(t *testing.T, elapsed time.Duration, want string) {
	t.Helper()
	time.Sleep(time.Until(v.start.Add(elapsed)))
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.results) != 1 {
		t.Fatalf("%d results after %s, want 1", len(v.results), elapsed)
	}
	var got string
	switch r := v.results[0]; r.Outcome {
	case Delivered:
		got = "delivered"
	case Refused:
		got = fmt.Sprintf("refused %d", r.Code)
		if r.Reason == "" {
			t.Error("refused without a reason")
		}
	case Unknown:
		got = fmt.Sprintf("unknown: %v", r.Err)
	}
	if got != want || v.elapsed != elapsed {
		t.Fatalf("%s after %s, want %s after %s", got, v.elapsed, want, elapsed)
	}
}

// checkIdle checks that the deliverer has no deliveries.
func (k *kit) checkIdle() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	w, ready := k.groups.window, len(k.groups.readyQueue)
	if w.outstanding != 0 || w.outstandingBytes != 0 || len(w.queue) > 0 || ready > 0 || k.sending {
		k.t.Errorf("%d outstanding with %d bytes, %d waiting, %d ready, sending %v; want nothing",
			w.outstanding, w.outstandingBytes, len(w.queue), ready, k.sending)
	}
	for name, g := range k.groups.byName {
		if g.outstanding != 0 || g.outstandingBytes != 0 || len(g.queue) > 0 || g.queueBytes != 0 {
			k.t.Errorf("%v: %d outstanding, %d waiting, want nothing", name, g.outstanding, len(g.queue))
		}
	}
	for subject, target := range k.targets.bySubject {
		if target.deliveries != 0 || target.unsentDeliveries != 0 {
			k.t.Errorf("%s has %d deliveries, %d of them unsent, want none", subject, target.deliveries, target.unsentDeliveries)
		}
	}
}
