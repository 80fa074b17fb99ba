package lease

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// maxHandover is the maximum time in which a lane moves from one instance to another: some rounds, each after a pause.
const maxHandover = 20 * time.Millisecond

var testSubjects = Subjects{Stream: "OWNERS", All: "sys.owners.>", Table: "sys.owners.table", Beat: "sys.owners.beat.",
	Call: "ctl.owners"}

// mutableAPI is a proxy to JetStream's API. While it is true, the proxy does not answer, like a stream without a
// leader.
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
	return func(c *SharedConfig) { c.APIPrefix = "mutable" }
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
			cfg.MaxBytes = int64(max(st.CachedInfo().State.Bytes, 1))
		}
	})
}

// checkFor calls checkHolds every second, for a duration.
func checkFor(t *testing.T, duration time.Duration, want string, peers ...*peer) {
	t.Helper()
	checkEvery(t, time.Second, duration, want, peers...)
}

// checkEvery calls checkHolds at an interval, for a duration.
func checkEvery(t *testing.T, interval, duration time.Duration, want string, peers ...*peer) {
	t.Helper()
	for range int(duration / interval) {
		checkHolds(t, want, peers...)
		if t.Failed() {
			return
		}
		time.Sleep(interval)
	}
}

// awaitHolds waits until the peers together hold n lanes, and returns the time for which it waited. It fails after
// limit.
func awaitHolds(t *testing.T, limit time.Duration, n int, peers ...*peer) time.Duration {
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
		if took > limit {
			t.Fatalf("after %s, %d of %d lanes are held", took, len(held), n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// leasesOf returns the present leases of some peers.
func leasesOf(peers ...*peer) map[*peer]map[string]Lease {
	leases := make(map[*peer]map[string]Lease)
	for _, p := range peers {
		leases[p] = p.currentLeases()
	}
	return leases
}

// checkKept fails if a peer has lost one of its earlier leases.
func checkKept(t *testing.T, earlier map[*peer]map[string]Lease) {
	t.Helper()
	for p, leases := range earlier {
		current := p.currentLeases()
		for lane, l := range leases {
			if current[lane] != l {
				t.Errorf("%s has lost its lease of %s", p.Instance(), lane)
			}
		}
	}
}

func makeStream(js jetstream.JetStream) error {
	_, err := js.CreateStream(context.Background(),
		jetstream.StreamConfig{Name: testSubjects.Stream, Subjects: []string{testSubjects.All}, MaxMsgsPerSubject: 1})
	return err
}

func lanes(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("L%d", i))
	}
	return names
}

// checkHolds compares the number of lanes that each peer holds, such as "2 2" for two peers, and fails if two peers
// hold the same lane.
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

// subjects returns the subjects in the stream, each with its number of messages.
func subjects(t *testing.T, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	st, err := js.Stream(context.Background(), testSubjects.Stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := st.Info(context.Background(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects
}
