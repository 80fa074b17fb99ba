package deliver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestShare gives one silent target more than its share: it holds no more than that, another's deliveries go on at once,
// and what waits is given back when the target turns out to say nothing.
func TestShare(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		seen := k.subscribe("silent", nil)
		results := &count{}
		for range share + 100 {
			k.Deliver(Message{Target: "silent", Mode: message.Stream}, func(Result) { results.add() })
		}
		synctest.Wait()
		if got := seen.get(); got != share {
			t.Errorf("the silent target was sent %d, want its share of %d", got, share)
		}
		for range 50 {
			k.send("orders.a", message.Auto).check(t, 0, "delivered")
		}
		time.Sleep(ackWait)
		synctest.Wait()
		if got := seen.get(); got != share {
			t.Errorf("after the first had timed out the target was sent %d, want no more than %d", got, share)
		}
		if got, want := results.get(), share+100; got != want {
			t.Errorf("%d results, want %d: what waited for a target that says nothing is given back", got, want)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.sent != 0 || len(k.turn) > 0 || k.pumping {
			t.Errorf("%d outstanding, %d in turn, pumping %v; want nothing", k.sent, len(k.turn), k.pumping)
		}
	})
}

// TestWindow fills the window with silent targets: nothing more is sent until there is room, and all get a turn.
func TestWindow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("silent.>", nil)
		results := &count{}
		const targets, each = 10, window / 9
		for i := range targets * each {
			k.Deliver(Message{Target: fmt.Sprintf("silent.%d", i%targets), Mode: message.Stream}, func(Result) { results.add() })
		}
		synctest.Wait()
		if got := seen.get(); got != window {
			t.Errorf("%d were sent, want the window of %d", got, window)
		}
		time.Sleep(2 * ackWait)
		synctest.Wait()
		if got, want := results.get(), targets*each; got != want || seen.get() != want {
			t.Errorf("%d results of %d sent, want %d", got, seen.get(), want)
		}
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
				k.mu.Lock()
				defer k.mu.Unlock()
				if k.sent != 0 {
					t.Errorf("%d still count as outstanding", k.sent)
				}
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
		if got, most := len(k.targets), remember+1000; got > most {
			t.Errorf("%d targets are kept, want at most %d", got, most)
		}
	})
}
