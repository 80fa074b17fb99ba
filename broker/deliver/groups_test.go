package deliver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

const share = DefaultWindow / groupShare // of one group

// TestShare gives one silent target more than its share: it holds no more than that, another's deliveries go on at once,
// and what waits is given back soon.
func TestShare(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		seen := k.subscribe("silent.>", nil)
		stalled := &count{}
		results := &count{}
		for range share + 100 {
			k.Deliver(Message{Target: "silent.x", Mode: message.Stream}, func(r Result) {
				results.add()
				if r.Outcome == Stalled {
					stalled.add()
				}
			})
		}
		synctest.Wait()
		if got := seen.get(); got != share {
			t.Errorf("the silent target was sent %d, want its share of %d", got, share)
		}
		for range 50 {
			k.send("orders.a", message.Auto).check(t, 0, "delivered")
		}
		time.Sleep(judgeEvery)
		synctest.Wait()
		if got := stalled.get(); got != 100 {
			t.Errorf("%d of those that wait are given back, want all", got)
		}
		k.Deliver(Message{Target: "silent.x", Mode: message.Stream}, func(r Result) {
			if want := time.Now().Add(leastStall); r.Outcome != Stalled || !r.Turn.Equal(want) {
				t.Errorf("the next one is %s until %s, want stalled until %s", r.Outcome, r.Turn, want)
			}
		})
		time.Sleep(ackWait)
		synctest.Wait()
		if got := seen.get(); got != share {
			t.Errorf("after the first had timed out the target was sent %d, want no more than %d", got, share)
		}
		if got, want := results.get(), share+100; got != want {
			t.Errorf("%d results, want %d", got, want)
		}
		k.checkIdle()
	})
}

// checkIdle looks for what is left when everything has its result.
func (k *kit) checkIdle() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.groups.window; w.past != 0 || w.pastBytes != 0 || len(w.waiting) > 0 || len(k.groups.ready) > 0 || k.sending {
		k.t.Errorf("%d outstanding with %d bytes, %d waiting, %d ready, sending %v; want nothing", w.past, w.pastBytes, len(w.waiting), len(k.groups.ready), k.sending)
	}
	for name, g := range k.groups.byName {
		if g.past != 0 || g.pastBytes != 0 || len(g.waiting) > 0 || g.waitingBytes != 0 {
			k.t.Errorf("%v: %d outstanding, %d waiting, want nothing", name, g.past, len(g.waiting))
		}
	}
	for subject, target := range k.targets.bySubject {
		if target.open != 0 || target.unsent != 0 {
			k.t.Errorf("%s has %d deliveries, %d of them unsent, want none", subject, target.open, target.unsent)
		}
	}
}

// TestShareOfGroups: what a group has outstanding is bounded, in messages and bytes, however it is spread over subjects.
func TestShareOfGroups(t *testing.T) {
	const none, stored = `{"total":0}`, `{"total":1,"streams":[{"config":{"name":"S","subjects":["s.>"]}}]}`
	for name, test := range map[string]struct {
		subject string
		streams pretend
		size    int
		want    int
	}{
		"one subject":                  {"s.x", none, 1, DefaultWindow / 8},
		"one subject, large":           {"s.x", none, 32 << 10, DefaultWindowBytes / 8 / (32 << 10)},
		"larger than the share":        {"s.x", none, DefaultWindowBytes, 1},
		"subjects of a stream":         {"s.%d.x", stored, 1, DefaultWindow / 8},
		"large, of a stream":           {"s.%d.x", stored, 32 << 10, DefaultWindowBytes / 8 / (32 << 10)},
		"subjects of two first tokens": {"s.x.%d", none, 1, DefaultWindow / 8},
		"subjects of one first token":  {"s.%d", none, 1, DefaultWindow / 4},
		"with more tokens":             {"s.%d.x", none, 1, DefaultWindow / 4},
		"large, of one first token":    {"s.%d", none, 32 << 10, DefaultWindowBytes / 4 / (32 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.lookup.api = test.streams
				k.subscribe("ui", nil)
				k.send("ui", message.Auto).check(t, 2*silence, "delivered") // the streams are known
				seen := k.subscribe("s.>", nil)
				results := &count{}
				count := 2 * test.want
				for i := range count {
					subject := test.subject
					if strings.Contains(subject, "%") {
						subject = fmt.Sprintf(subject, i)
					}
					k.Deliver(Message{Target: subject, Mode: message.Stream, Size: test.size}, func(Result) { results.add() })
				}
				synctest.Wait()
				if got := seen.get(); got != test.want {
					t.Errorf("%d were sent, want %d", got, test.want)
				}
				time.Sleep(2 * ackWait)
				synctest.Wait()
				if got := results.get(); got != count {
					t.Errorf("%d results, want %d", got, count)
				}
				k.checkIdle()
			})
		})
	}
}

// TestSilentLeaveRoom: however many groups are silent, each has a part of what the others leave, and what is sent to one
// that answers goes at once.
func TestSilentLeaveRoom(t *testing.T) {
	for name, size := range map[string]int{"small": 1, "large": 32 << 10} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
				seen := k.subscribe("*.silent", nil)
				results := &count{}
				const targets = 20
				window := min(DefaultWindow, DefaultWindowBytes/size)
				want := 0
				for i := range targets {
					for range window / groupShare {
						k.Deliver(Message{Target: fmt.Sprintf("%d.silent", i), Mode: message.Stream, Size: size}, func(Result) { results.add() })
					}
					synctest.Wait()
					if want += max(1, (window-want)/groupShare); seen.get() != want {
						t.Fatalf("%d were sent of %d silent groups, want %d", seen.get(), i+1, want)
					}
				}
				for range 50 {
					k.send("orders.a", message.Auto).check(t, 0, "delivered")
				}
				time.Sleep(2 * ackWait)
				synctest.Wait()
				if got, want := results.get(), targets*(window/groupShare); got != want {
					t.Errorf("%d results, want %d", got, want)
				}
				k.checkIdle()
			})
		})
	}
}

// TestWindow: a group may always have one outstanding, but no more groups than fit into the window; all get a turn.
func TestWindow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		const window = 64
		k.mu.Lock()
		k.groups.window.most = window
		k.mu.Unlock()
		seen := k.subscribe("*.silent", nil)
		results := &count{}
		for i := range 2 * window {
			k.Deliver(Message{Target: fmt.Sprintf("%d.silent", i), Mode: message.Stream}, func(Result) { results.add() })
		}
		synctest.Wait()
		if got := seen.get(); got != window {
			t.Errorf("%d were sent, want the window of %d", got, window)
		}
		time.Sleep(2 * ackWait)
		synctest.Wait()
		if got, want := results.get(), 2*window; got != want || seen.get() != want {
			t.Errorf("%d results of %d sent, want %d", got, seen.get(), want)
		}
		k.checkIdle()
	})
}

// TestDrain gives back what was not sent, once; what was sent still gets its answer, and nothing is sent any more.
func TestDrain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("silent", nil)
		var back, other atomic.Int32
		done := func(r Result) {
			if r.Outcome == Unknown && errors.Is(r.Err, ErrDraining) {
				back.Add(1)
			} else {
				other.Add(1)
			}
		}
		for range share + 100 {
			k.Deliver(Message{Target: "silent", Mode: message.Stream}, done)
		}
		k.Drain()
		if got := back.Load(); got != 100 {
			t.Errorf("%d given back, want 100", got)
		}
		k.Deliver(Message{Target: "silent"}, done)
		k.Drain()
		if got := back.Load(); got != 101 {
			t.Errorf("%d given back after another delivery, want 101", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if back.Load() != 101 || other.Load() != share || seen.get() != share {
			t.Errorf("%d given back, %d answered, %d sent; want 101, %d, %d", back.Load(), other.Load(), seen.get(), share, share)
		}
	})
}

// TestDoneOnce delivers to targets of every kind in every mode while the server comes and goes and finally the deliverer
// drains: each delivery gets exactly one result.
func TestDoneOnce(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				rng := rand.New(rand.NewPCG(seed, 3))
				k := newKit(t, s)
				k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Discard: jetstream.DiscardNew, MaxMsgs: 300})
				k.stream(jetstream.StreamConfig{Name: "LOGS", Subjects: []string{"logs.>"}, NoAck: true})
				k.subscribe("ui.>", nil)
				const total = 5000
				results := make([]atomic.Int32, total)
				var delivering sync.WaitGroup
				for part := range 2 {
					rng := rand.New(rand.NewPCG(seed, uint64(part)))
					delivering.Go(func() {
						for i := part; i < total; i += 2 {
							target := []string{"orders.a", "orders.b", "logs.a", "ui.a", "ui.b", "nobody"}[rng.IntN(6)]
							mode := []message.Mode{"", message.Stream, message.Core}[rng.IntN(3)]
							k.Deliver(Message{Target: target, Mode: mode}, func(Result) { results[i].Add(1) })
							if rng.IntN(100) == 0 {
								time.Sleep(time.Duration(rng.IntN(int(50 * time.Millisecond))))
							}
						}
					})
				}
				for range 3 {
					time.Sleep(time.Duration(rng.IntN(int(500 * time.Millisecond))))
					s.Restart(time.Duration(rng.IntN(int(100 * time.Millisecond))))
				}
				if seed == 2 {
					k.Drain()
				}
				delivering.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				for i := range results {
					if got := results[i].Load(); got != 1 {
						t.Errorf("delivery %d got %d results, want 1", i, got)
					}
				}
				k.checkIdle()
			})
		})
	}
}

// TestTargetsAreForgotten: evidence of idle targets is bounded, and delivering to ever new ones stays cheap.
func TestTargetsAreForgotten(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		results := &count{}
		const total = 3 * remember
		for i := range total {
			k.Deliver(Message{Target: fmt.Sprintf("orders.%d", i)}, func(Result) { results.add() })
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if got := results.get(); got != total {
			t.Errorf("%d results, want %d", got, total)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if targets, groups, most := len(k.targets.bySubject), len(k.groups.byName), remember+1000; targets > most || groups > most {
			t.Errorf("%d targets and %d groups are kept, want at most %d", targets, groups, most)
		}
	})
}
