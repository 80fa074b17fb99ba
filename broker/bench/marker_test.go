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

// siteOf returns a run on a server under fake time.
func siteOf(t *testing.T, s *natstest.Server, prefix string) site {
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

// furnish creates the streams of a run: its own, and those of its broker.
func furnish(t *testing.T, s site) {
	t.Helper()
	if err := s.createMarker(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.create(t.Context(), jetstream.StreamConfig{
		Name: s.names.TargetStream(), Subjects: []string{s.names.targets()},
	})
	if err != nil {
		t.Fatal(err)
	}
	makeBroker(t, s.js, s.names.prefix)
}

func makeBroker(t *testing.T, js jetstream.JetStream, prefix string) {
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
	all, _, err := s.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range all {
		names = append(names, info.Config.Name)
	}
	slices.Sort(names)
	return names
}

// others creates streams that a run must not touch: a broker's, one with the name of a run but no metadata, and one
// with the metadata of a run and another name.
func others(t *testing.T, s site) []string {
	t.Helper()
	makeBroker(t, s.js, "delay")
	makeBroker(t, s.js, "bench-zzzzzzzz")
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

func TestARunRemovesWhatItMadeAndNothingElse(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		run := siteOf(t, s, "bench-aaaaaaaa")
		want := others(t, run)
		furnish(t, run)
		if err := run.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := streamNames(t, run); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A killed run leaves a run marker without a heartbeat. A live run has one, however long it takes.
func TestTheNextRunRemovesWhatAKilledOneLeft(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		killed, alive := siteOf(t, s, "bench-aaaaaaaa"), siteOf(t, s, "bench-bbbbbbbb")
		want := others(t, killed)
		furnish(t, alive)
		want = slices.Sorted(slices.Values(slices.Concat(want, slices.DeleteFunc(streamNames(t, alive),
			func(name string) bool { return slices.Contains(want, name) }))))
		furnish(t, killed)
		ctx, cancel := context.WithCancel(t.Context())
		beating := make(chan struct{})
		go func() {
			defer close(beating)
			alive.keepAlive(ctx)
		}()
		defer func() { cancel(); <-beating }()

		next := siteOf(t, s, "bench-cccccccc")
		time.Sleep(heartbeatTimeout)
		if swept, err := next.sweep(t.Context()); err != nil || len(swept) > 0 {
			t.Errorf("after %s: got %q (%v), want nothing: it may be alive", heartbeatTimeout, swept, err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		swept, err := next.sweep(t.Context())
		if err != nil || !slices.Equal(swept, []string{"bench-aaaaaaaa"}) {
			t.Errorf("got %q (%v), want bench-aaaaaaaa", swept, err)
		}
		if got := streamNames(t, next); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Between two turns of the broker all streams of its own are removed, and none of the run.
func TestEachTurnOfTheBrokerHasNewStreams(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		run := siteOf(t, s, "bench-aaaaaaaa")
		furnish(t, run)
		if err := run.removeBroker(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := streamNames(t, run), []string{"BENCH-AAAAAAAA-RUN", "BENCH-AAAAAAAA-TO"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestPrefixesOfRunsAreTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		p := NewPrefix()
		if _, err := NewNames(p); err != nil || !runPrefix.MatchString(p) || seen[p] {
			t.Fatalf("got %q (%v), want a new one of the form %s", p, err, runPrefix)
		}
		seen[p] = true
	}
}
