package bench

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/jsapi"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

func newSite(t *testing.T, s *natstest.Server, prefix string) site {
	t.Helper()
	names, err := NewNames(prefix)
	if err != nil {
		t.Fatal(err)
	}
	nc := s.Connect()
	return site{
		js: s.JetStream(nc), api: jsapi.Client{Conn: nc, API: config.APIPrefix("")}, names: names, replicas: 1,
	}
}

func createStreams(t *testing.T, s site) {
	t.Helper()
	if err := s.createMarker(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.create(t.Context(), jetstream.StreamConfig{
		Name: s.names.targetStream(), Subjects: []string{s.names.targets()},
	})
	if err != nil {
		t.Fatal(err)
	}
	createBrokerStreams(t, s.js, s.names.prefix)
}

func createBrokerStreams(t *testing.T, js jetstream.JetStream, prefix string) {
	t.Helper()
	ladder, err := levels.Parse("1s")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := broker.StreamsOf(broker.Config{Prefix: prefix, Ladder: ladder, Provision: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range streams.Wanted(1<<20, false) {
		if _, err := js.CreateStream(t.Context(), spec.Config()); err != nil {
			t.Fatal(err)
		}
	}
}

func streamNames(t *testing.T, s site) []string {
	t.Helper()
	infos, _, err := s.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range infos {
		names = append(names, info.Config.Name)
	}
	slices.Sort(names)
	return names
}

// createForeignStreams creates streams that a run must not remove: streams of brokers and of other programs, one of
// them with the name of a run marker, and two with the metadata of a run. It returns the names of all streams.
func createForeignStreams(t *testing.T, s site) []string {
	t.Helper()
	createBrokerStreams(t, s.js, "delay")
	createBrokerStreams(t, s.js, "bench-zzzzzzzz")
	for _, cfg := range []jetstream.StreamConfig{
		{Name: "BENCH-YYYYYYYY-RUN", Subjects: []string{"y"}},
		{Name: "ORDERS", Subjects: []string{"orders.>"}},
		{Name: "WRONG-RUN", Subjects: []string{"w"}, Metadata: map[string]string{metaBench: "wrong"}},
		{Name: "COPY", Subjects: []string{"c"}, Metadata: map[string]string{metaBench: "bench-xxxxxxxx"}},
	} {
		if _, err := s.js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	return streamNames(t, s)
}

func TestRemoveOwnStreamsOnly(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		run := newSite(t, s, "bench-aaaaaaaa")
		want := createForeignStreams(t, run)
		createStreams(t, run)
		if err := run.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := streamNames(t, run); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A run removes the streams of a killed run, which sends no heartbeats. It keeps the streams of a running run.
func TestSweepKilledRun(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		killed, alive := newSite(t, s, "bench-aaaaaaaa"), newSite(t, s, "bench-bbbbbbbb")
		createForeignStreams(t, killed)
		createStreams(t, alive)
		want := streamNames(t, alive)
		createStreams(t, killed)
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			alive.keepAlive(ctx)
		}()
		defer func() { cancel(); <-finished }()

		next := newSite(t, s, "bench-cccccccc")
		time.Sleep(heartbeatTimeout)
		if prefixes, err := next.sweep(t.Context()); err != nil || len(prefixes) > 0 {
			t.Errorf("after %s: got %q (%v), want nothing, since the run may be alive", heartbeatTimeout, prefixes, err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		prefixes, err := next.sweep(t.Context())
		if err != nil || !slices.Equal(prefixes, []string{"bench-aaaaaaaa"}) {
			t.Errorf("got %q (%v), want bench-aaaaaaaa", prefixes, err)
		}
		if got := streamNames(t, next); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestRemoveBroker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		run := newSite(t, s, "bench-aaaaaaaa")
		createStreams(t, run)
		if err := run.removeBroker(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := streamNames(t, run), []string{"BENCH-AAAAAAAA-RUN", "BENCH-AAAAAAAA-TO"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestPrefixesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		p := NewPrefix()
		if _, err := NewNames(p); err != nil || !runPrefix.MatchString(p) || seen[p] {
			t.Fatalf("got %q (%v), want a new prefix that matches %s", p, err, runPrefix)
		}
		seen[p] = true
	}
}
