package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// settle is the maximum time to pass a lane from one instance to another: some rounds, each after a pause.
const settle = 20 * time.Millisecond

var meeting = Subjects{Stream: "OWNERS", All: "sys.owners.>", Table: "sys.owners.table", Beat: "sys.owners.beat.",
	Call: "ctl.owners"}

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
	checkEvery(t, time.Second, long, want, peers...)
}

// checkEvery is checkFor with another interval.
func checkEvery(t *testing.T, interval, long time.Duration, want string, peers ...*peer) {
	t.Helper()
	for range int(long / interval) {
		checkHolds(t, want, peers...)
		if t.Failed() {
			return
		}
		time.Sleep(interval)
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

func makeStream(js jetstream.JetStream) error {
	_, err := js.CreateStream(context.Background(),
		jetstream.StreamConfig{Name: meeting.Stream, Subjects: []string{meeting.All}, MaxMsgsPerSubject: 1})
	return err
}

func lanes(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("L%d", i))
	}
	return all
}

// checkHolds compares the numbers of lanes that the peers hold, and fails if two hold one lane.
func checkHolds(t *testing.T, want string, peers ...*peer) {
	t.Helper()
	synctest.Wait()
	holder, counts := make(map[string]int), []string{}
	for n, p := range peers {
		held := p.holds()
		counts = append(counts, fmt.Sprint(len(held)))
		for _, lane := range held {
			if other, twice := holder[lane]; twice {
				t.Errorf("%s is held by %d and by %d", lane, other, n)
			}
			holder[lane] = n
		}
	}
	if got := strings.Join(counts, " "); got != want {
		t.Errorf("peers hold %s lanes, want %s", got, want)
	}
}

func meet(t *testing.T, f func(t *testing.T, s *natstest.Server, js jetstream.JetStream)) {
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
	st, err := js.Stream(context.Background(), meeting.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.LastSeq
}

// subjects returns the subjects in the stream, each with its number of messages.
func subjects(t *testing.T, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	st, err := js.Stream(context.Background(), meeting.Stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := st.Info(context.Background(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects
}
