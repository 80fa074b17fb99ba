package lease

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// keys are the keys of all instances.
var keys = message.NewKeys([]string{"a secret of sixteen bytes"}, time.Unix(1, 0))

func sealed(c *SharedConfig) { c.Keys = keys }

// deaf makes an instance whose calls do not arrive, and to which none arrive, as across a link that is down.
func deaf(c *SharedConfig) { c.Subjects.Call = nats.NewInbox() }

func at(name string) option { return func(c *SharedConfig) { c.Place = name } }
func locked(name string) option {
	return func(c *SharedConfig) { c.Place, c.Locked = name, true }
}

func failing(f func(error)) option { return func(c *SharedConfig) { c.Fail = f } }

// muted is a connection to JetStream's API without answers while it is muted, as from a stream without a leader.
type muted struct{ atomic.Bool }

func (m *muted) option(t *testing.T, s *natstest.Server) option {
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
	return func(c *SharedConfig) { c.APIPrefix = "mutable" }
}

// bound limits the stream to its present size, or removes the limit.
func bound(t *testing.T, js jetstream.JetStream, full bool) {
	t.Helper()
	st, err := js.Stream(context.Background(), meeting.Stream)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Reconfigure(t, js, meeting.Stream, func(cfg *jetstream.StreamConfig) {
		cfg.Discard, cfg.MaxBytes = jetstream.DiscardNew, -1
		if full {
			cfg.MaxBytes = int64(max(st.CachedInfo().State.Bytes, 1))
		}
	})
}

// checkFor checks every second, for a duration, that the peers hold the wanted number of lanes, each held by one peer.
func checkFor(t *testing.T, long time.Duration, want string, peers ...*peer) {
	t.Helper()
	for range int(long / time.Second) {
		checkHolds(t, want, peers...)
		if t.Failed() {
			return
		}
		time.Sleep(time.Second)
	}
}

// awaitHolds waits until the peers hold all lanes, and returns the time this took.
func awaitHolds(t *testing.T, most time.Duration, n int, peers ...*peer) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		held := make(map[string]bool)
		for _, p := range peers {
			for _, lane := range p.holds() {
				held[lane] = true
			}
		}
		took := time.Since(start)
		if len(held) == n {
			return took
		}
		if took > most {
			t.Fatalf("after %s %d lanes of %d are held", took, len(held), n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkStays fails if a lease of before is missing now.
func checkStays(t *testing.T, before map[string]Lease, p *peer) {
	t.Helper()
	now := p.all()
	var moved []string
	for lane, l := range before {
		if now[lane] != l {
			moved = append(moved, lane)
		}
	}
	if slices.Sort(moved); len(moved) > 0 {
		t.Errorf("%v have been given up", moved)
	}
}
