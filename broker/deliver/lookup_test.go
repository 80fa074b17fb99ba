package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// countingAsker counts the requests, delays each request, and fails all requests while failing is true.
type countingAsker struct {
	jsapi.Asker
	delay    time.Duration
	failing  atomic.Bool
	requests atomic.Int32
}

func (c *countingAsker) Ask(ctx context.Context, subject string, request, answer any) error {
	c.requests.Add(1)
	time.Sleep(c.delay)
	if c.failing.Load() {
		return errors.New("no")
	}
	return c.Asker.Ask(ctx, subject, request, answer)
}

func (k *kit) countingAsker() *countingAsker {
	c := &countingAsker{Asker: k.lookup.api}
	k.lookup.api = c
	return c
}

// TestManyCoreTargets: each of 100,000 messages to different core subjects, all sent at one time, arrives once. The
// streams are listed once, and not again in an hour without deliveries.
func TestManyCoreTargets(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const targets = 100_000
		k := newKit(t, s)
		api := k.countingAsker()
		api.delay = 30 * time.Millisecond
		seen := k.subscribe("ui.>", nil)
		results := make([]atomic.Int32, Outcomes)
		start := time.Now()
		var took atomic.Int64
		for i := range targets {
			k.Deliver(Message{Target: fmt.Sprintf("ui.%d.notify", i)}, func(r Result) {
				results[r.Outcome].Add(1)
				took.Store(int64(time.Since(start)))
			})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := results[Delivered].Load(); seen.get() != targets || got != targets {
			t.Errorf("%d seen, %d delivered; want all, once", seen.get(), got)
		}
		if got := time.Duration(took.Load()); got > 2*time.Second {
			t.Errorf("the last result came after %s", got)
		}
		if got := api.requests.Load(); got != 1 {
			t.Errorf("the streams were listed %d times, want once", got)
		}
	})
}

// TestListInterval: during deliveries to silent targets, the streams are listed every few seconds, and not for each
// subject.
func TestListInterval(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		api := k.countingAsker()
		k.subscribe("ui.>", nil)
		for i := range 600 {
			k.Deliver(Message{Target: fmt.Sprintf("ui.%d", i)}, func(r Result) {
				if r.Outcome != Delivered {
					t.Errorf("%s: %v", r.Outcome, r.Err)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		if got, limit := api.requests.Load(), int32(time.Minute/snapshotRenewAge); got < 12 || got > limit {
			t.Errorf("the streams were listed %d times in a minute, want 12 to %d", got, limit)
		}
	})
}

// TestSilenceWithoutList: before the first list of the streams, silence is no delivery. After it, silence is a
// delivery.
func TestSilenceWithoutList(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		api := k.countingAsker()
		api.failing.Store(true)
		k.subscribe("ui.>", nil)
		k.send("ui.a", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
		v := k.send("ui.a", message.ModeAuto)
		time.Sleep(3 * time.Second)
		api.failing.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if v.results[0].Outcome != Delivered {
			t.Errorf("got %v, want delivered", v.results)
		}
	})
}

// TestStreamsOfAllKinds: a mirror listens on nothing, a stream without subjects listens on its name, and a stream that
// transforms subjects listens on the subjects before they are transformed.
func TestStreamsOfAllKinds(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
		k.stream(jetstream.StreamConfig{Name: "COPY", Mirror: &jetstream.StreamSource{Name: "ORDERS"}})
		k.stream(jetstream.StreamConfig{Name: "SUM", Sources: []*jetstream.StreamSource{{Name: "ORDERS"}}})
		k.stream(jetstream.StreamConfig{Name: "alone"})
		k.stream(jetstream.StreamConfig{Name: "MOVED", Subjects: []string{"in.*"},
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: "in.*", Destination: "out.{{wildcard(1)}}"}})
		k.stream(jetstream.StreamConfig{Name: "MUTE", Subjects: []string{"logs.*"}, NoAck: true})
		k.subscribe(">", nil)
		k.send("nobody", message.ModeAuto).check(t, 2*silence, "delivered")
		for subject, want := range map[string]listenerKind{
			"orders.a": kindAcks, "COPY": kindNone, "SUM": kindNone, "alone": kindAcks,
			"in.x": kindAcks, "out.x": kindNone, "logs.mute": kindNoAck, "x": kindNone,
		} {
			if got := k.lookup.listenerKind(subject, time.Now()); got != want {
				t.Errorf("%s: got %d, want %d", subject, got, want)
			}
		}
	})
}

// TestManyStreams lists more streams than fit on one page.
func TestManyStreams(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		for i := range 300 {
			k.stream(jetstream.StreamConfig{Name: fmt.Sprintf("S%03d", i), Subjects: []string{fmt.Sprintf("s%d.>", i)},
				Storage: jetstream.MemoryStorage})
		}
		k.subscribe("ui", nil)
		k.send("ui", message.ModeAuto).check(t, 2*silence, "delivered")
		for i := range 300 {
			if got := k.lookup.listenerKind(fmt.Sprintf("s%d.a", i), time.Now()); got != kindAcks {
				t.Errorf("s%d: got %d, want a stream", i, got)
			}
		}
	})
}

// TestLeaderlessStreams: a stream without a leader is listed by name only. The lookup then uses the subjects of that
// stream in the previous list. If that list lacks them too, the stream may listen on any subject.
func TestLeaderlessStreams(t *testing.T) {
	p := &natstest.Pages{Answers: []string{
		`{"total":2,"streams":[{"config":{"name":"A","subjects":["a"]}},{"config":{"name":"B","subjects":["b"]}}]}`,
		`{"total":3,"streams":[{"config":{"name":"A","subjects":["a"]}}],"missing":["A"]}`,
		`{"total":3,"missing":["B"]}`,
		`{"total":3,"streams":[{"config":{"name":"C","subjects":["c"]}}]}`,
		`{"total":2,"streams":[{"config":{"name":"A","subjects":["a"]}}],"missing":["NEW"]}`,
		`{"total":2,"streams":[{"config":{"name":"A","subjects":["a"]}}]}`,
		`{"total":3,"streams":[{"config":{"name":"C","subjects":["c"]}}]}`,
	}}
	s := newLookup(p, func(stream string) bool { return stream == "DELAY_10s" }, nil)
	check := func(want ...listenerKind) {
		t.Helper()
		got, err := s.list(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.snapshot.Store(got)
		for i, subject := range []string{"a", "b", "c", "d"} {
			if got := s.listenerKind(subject, time.Now()); got != want[i] {
				t.Errorf("%s: got %d, want %d", subject, got, want[i])
			}
		}
	}
	check(kindAcks, kindAcks, kindNone, kindNone)
	check(kindAcks, kindAcks, kindAcks, kindNone)
	check(kindAcks, kindUnknown, kindUnknown, kindUnknown)
	if _, err := s.list(t.Context(), time.Now()); !errors.Is(err, jsapi.ErrChanged) {
		t.Errorf("pages that do not belong together: got %v, want %v", err, jsapi.ErrChanged)
	}
	if want := []int{0, 0, 1, 2, 0, 0, 1}; !slices.Equal(p.Offsets, want) {
		t.Errorf("pages began at %v, want %v", p.Offsets, want)
	}
}

// TestStreamOfAnotherAccount: after a stream of another account has acknowledged, silence on subjects with the same
// first two tokens is no delivery for a minute.
func TestStreamOfAnotherAccount(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		var away atomic.Bool
		k.subscribe("shop.eu.>", func(m *nats.Msg) {
			if !away.Load() {
				_ = m.Respond([]byte(`{"stream":"SHOP", "seq":7}`))
			}
		})
		k.subscribe("shop.us.>", nil)
		k.send("shop.eu.1", message.ModeAuto).check(t, 0, "delivered")
		away.Store(true)
		k.send("shop.eu.1", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
		k.send("shop.eu.2", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
		time.Sleep(time.Second) // until the silence of the last delivery is over
		k.send("shop.us.2", message.ModeAuto).check(t, silence, "delivered")
		time.Sleep(ackMemory)
		k.send("shop.eu.3", message.ModeAuto).check(t, 2*silence, "delivered")
	})
}

// TestCoreBesideStream: an acknowledgement by a stream of this account does not affect similar subjects on which that
// stream does not listen.
func TestCoreBesideStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.eu.stored.>"}})
		k.subscribe("shop.eu.ui.>", nil)
		k.send("shop.eu.stored.1", message.ModeAuto).check(t, 0, "delivered")
		time.Sleep(time.Second) // until the silence of the last delivery is over
		k.send("shop.eu.ui.1", message.ModeAuto).check(t, 2*silence, "delivered")
	})
}
