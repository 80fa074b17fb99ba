package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestHalt: while a target is halted, no message is sent to it. Halt returns when all messages that were already sent
// to the target are answered, or when its context ends. Other targets get their messages meanwhile.
func TestHalt(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("svc.>", func(m *nats.Msg) {
			time.AfterFunc(time.Second, func() { _ = m.Respond([]byte("ok")) })
		})
		others := k.subscribe("mail.>", nil)
		var mu sync.Mutex // guards results
		results := make(map[string]int)
		send := func(target string, mode message.Mode) {
			k.Deliver(Message{Target: target, Mode: mode}, func(r Result) {
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(r.Err, ErrHalted) {
					results["halted"]++
				} else {
					results[r.Outcome.String()]++
				}
			})
		}
		got := func(outcome string) int {
			mu.Lock()
			defer mu.Unlock()
			return results[outcome]
		}
		send("svc.x", message.ModeRequest)
		synctest.Wait()
		start := time.Now()
		k.Halt(context.Background(), func(target string) bool { return target == "svc.x" })
		if took := time.Since(start); took < time.Second || took > time.Second+haltPollInterval || got("delivered") != 1 {
			t.Errorf("Halt took %s, with %d delivered, want the second in which the target answers", took,
				got("delivered"))
		}
		send("svc.x", message.ModeRequest)
		send("mail.x", message.ModeCore)
		time.Sleep(time.Minute)
		if seen.get() != 1 || got("halted") != 1 || others.get() != 1 {
			t.Errorf("halted: %d seen, %d given back, %d for others; want 1 of each", seen.get(), got("halted"), others.get())
		}
		k.Halt(context.Background(), nil)
		send("svc.x", message.ModeRequest)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		k.Halt(ctx, func(string) bool { return true })
		if took := time.Since(start); took < 100*time.Millisecond || seen.get() != 2 {
			t.Errorf("Halt took %s, and %d were seen, want the timeout of its context, and 2", took, seen.get())
		}
		time.Sleep(time.Minute)
	})
}

// TestHaltMatchesOnce: Halt calls isHalted once for each target, and not at each poll, because it holds the lock that
// all deliveries need.
func TestHaltMatchesOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.subscribe("svc.>", func(m *nats.Msg) {
			time.AfterFunc(time.Second, func() { _ = m.Respond([]byte("ok")) })
		})
		const targets = 20
		for i := range targets {
			k.Deliver(Message{Target: fmt.Sprintf("svc.%d", i), Mode: message.ModeRequest}, func(Result) {})
		}
		synctest.Wait()
		matched := 0
		k.Halt(context.Background(), func(string) bool { matched++; return true })
		if matched != targets {
			t.Errorf("the targets were matched %d times, want %d", matched, targets)
		}
		time.Sleep(time.Minute)
	})
}

// TestHaltGivesBackWaiting: Halt gives back the messages that wait for a slow target. None of them is sent when the
// target answers.
func TestHaltGivesBackWaiting(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("svc.>", func(m *nats.Msg) {
			time.AfterFunc(200*time.Millisecond, func() { _ = m.Respond([]byte("ok")) })
		})
		const count = 20_000
		var halted, others atomic.Int64
		for range count {
			k.Deliver(Message{Target: "svc.x", Mode: message.ModeRequest}, func(r Result) {
				if errors.Is(r.Err, ErrHalted) {
					halted.Add(1)
				} else {
					others.Add(1)
				}
			})
		}
		synctest.Wait()
		sent := seen.get()
		ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
		defer cancel()
		k.Halt(ctx, func(string) bool { return true })
		if sent == 0 || sent == count || int(halted.Load()) != count-sent {
			t.Errorf("%d of %d were sent, and %d given back, want all others", sent, count, halted.Load())
		}
		time.Sleep(time.Minute)
		if seen.get() != sent || int(others.Load()) != sent {
			t.Errorf("%d were sent in total, and %d have an answer, want %d", seen.get(), others.Load(), sent)
		}
	})
}
