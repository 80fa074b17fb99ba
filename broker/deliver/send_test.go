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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

type owner struct{ stopped atomic.Bool }

func (o *owner) MayDeliver() bool { return !o.stopped.Load() }

// TestRecall: when an owner stops, its waiting messages are given back immediately and not sent. The messages of other
// owners are sent.
func TestRecall(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("svc", func(m *nats.Msg) { time.AfterFunc(judgeInterval/2, func() { _ = m.Respond(nil) }) })
		var back, sent atomic.Int32
		stopping, remaining := new(owner), new(owner)
		for i := range share + 200 {
			o := stopping
			if i%2 == 1 {
				o = remaining
			}
			k.Deliver(Message{Target: "svc", Mode: message.ModeRequest, Owner: o}, func(r Result) {
				if errors.Is(r.Err, ErrDraining) {
					back.Add(1)
				} else {
					sent.Add(1)
				}
			})
		}
		stopping.stopped.Store(true)
		k.Recall(stopping)
		if got := back.Load(); got != 100 {
			t.Errorf("%d are given back, want 100", got)
		}
		time.Sleep(3 * time.Second)
		if back, sent := back.Load(), sent.Load(); back != 100 || sent != share+100 || seen.get() != share+100 {
			t.Errorf("%d given back, %d answered, %d seen; want 100 and %d", back, sent, seen.get(), share+100)
		}
		remaining.stopped.Store(true) // MayDeliver is called before each message is sent
		k.Deliver(Message{Target: "svc", Mode: message.ModeRequest, Owner: remaining}, func(r Result) { back.Add(1) })
		if back.Load() != 101 {
			t.Error("an owner that may not deliver delivers")
		}
	})
}

// TestExpiredWhileWaiting: a message that expires while it waits for room is not sent.
func TestExpiredWhileWaiting(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const busy = judgeInterval / 2
		k := newKit(t, s)
		seen := k.subscribe("svc", func(m *nats.Msg) { time.AfterFunc(busy, func() { _ = m.Respond(nil) }) })
		outcomes := make(chan Outcome, share+2)
		start := time.Now()
		for i := range share + 2 {
			m := Message{Target: "svc", Mode: message.ModeRequest}
			switch i {
			case share:
				m.Expires = start.Add(busy - 1)
			case share + 1:
				m.Expires = start.Add(busy)
			}
			k.Deliver(m, func(r Result) { outcomes <- r.Outcome })
		}
		count := make(map[Outcome]int)
		for range share + 2 {
			count[<-outcomes]++
		}
		if count[Expired] != 1 || count[Delivered] != share+1 {
			t.Errorf("got %v, want 1 expired and %d delivered", count, share+1)
		}
		if got := seen.get(); got != share+1 {
			t.Errorf("the service saw %d, want %d", got, share+1)
		}
	})
}

// TestDrain: unsent messages are given back once. Sent messages still get their results, and no further message is
// sent.
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
			k.Deliver(Message{Target: "silent", Mode: message.ModeStream}, done)
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
			t.Errorf("%d given back, %d answered, %d sent; want 101, %d, %d",
				back.Load(), other.Load(), seen.get(), share, share)
		}
	})
}

// TestEnd: after the deliverer and its inbox have ended, every delivery has a result. This includes deliveries for
// which the last answers made room.
func TestEnd(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.subscribe("silent", nil)
		var results atomic.Int32
		for range 2*share + 100 {
			k.Deliver(Message{Target: "silent", Mode: message.ModeStream}, func(Result) { results.Add(1) })
		}
		k.stop()
		if got := results.Load(); got != 2*share+100 {
			t.Errorf("%d results, want %d", got, 2*share+100)
		}
		k.checkIdle()
	})
}

// TestEndWithTheLastAnswer ends the deliverer at the moment when the only answer makes room for waiting messages.
func TestEndWithTheLastAnswer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		var first, second atomic.Int32
		k.Deliver(Message{Target: "orders.x", Mode: message.ModeStream, Size: defaultWindowBytes / groupDivisor},
			func(Result) { first.Add(1); k.end() })
		k.Deliver(Message{Target: "orders.x", Mode: message.ModeStream, Size: 1}, func(Result) { second.Add(1) })
		synctest.Wait()
		if first.Load() != 1 || second.Load() != 1 {
			t.Errorf("%d and %d results, want one each", first.Load(), second.Load())
		}
		k.checkIdle()
	})
}

// TestDoneOnce: each delivery gets exactly one result. The deliveries go to several kinds of targets in all modes but
// request, while the server stops and starts. With one seed, the deliverer drains at the end.
func TestDoneOnce(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				rng := rand.New(rand.NewPCG(seed, 3))
				k := newKit(t, s)
				k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"},
					Discard: jetstream.DiscardNew, MaxMsgs: 300})
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
							mode := []message.Mode{"", message.ModeStream, message.ModeCore}[rng.IntN(3)]
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
