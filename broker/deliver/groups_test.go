package deliver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

const share = defaultWindow / groupDivisor // messages that a group may have outstanding while the others have none

// TestShare: a silent target has no more messages outstanding than its share. Messages for another target are sent
// immediately. Messages that wait for the silent target are given back at the next judgement.
func TestShare(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		seen := k.subscribe("silent.>", nil)
		stalled := &count{}
		results := &count{}
		for range share + 100 {
			k.Deliver(Message{Target: "silent.x", Mode: message.ModeStream}, func(r Result) {
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
			k.send("orders.a", message.ModeAuto).check(t, 0, "delivered")
		}
		time.Sleep(judgeInterval)
		synctest.Wait()
		if got := stalled.get(); got != 100 {
			t.Errorf("%d of the waiting messages are given back, want all 100", got)
		}
		k.Deliver(Message{Target: "silent.x", Mode: message.ModeStream}, func(r Result) {
			if want := time.Now().Add(minStall); r.Outcome != Stalled || !r.RetryAt.Equal(want) {
				t.Errorf("the next message is %s until %s, want stalled until %s", r.Outcome, r.RetryAt, want)
			}
		})
		time.Sleep(jsapi.Timeout)
		synctest.Wait()
		if got := seen.get(); got != share {
			t.Errorf("after the timeouts, the target was sent %d in total, want %d", got, share)
		}
		if got, want := results.get(), share+100; got != want {
			t.Errorf("%d results, want %d", got, want)
		}
		k.checkIdle()
	})
}

// TestShareOfGroups: the outstanding messages and bytes of all subjects of a group together are bounded.
func TestShareOfGroups(t *testing.T) {
	const none, stored = `{"total":0}`, `{"total":1,"streams":[{"config":{"name":"S","subjects":["s.>"]}}]}`
	for name, test := range map[string]struct {
		subject string
		streams fixedReply
		size    int
		want    int
	}{
		"one subject":                  {"s.x", none, 1, defaultWindow / 8},
		"one subject, large":           {"s.x", none, 32 << 10, defaultWindowBytes / 8 / (32 << 10)},
		"larger than the share":        {"s.x", none, defaultWindowBytes, 1},
		"subjects of a stream":         {"s.%d.x", stored, 1, defaultWindow / 8},
		"large, of a stream":           {"s.%d.x", stored, 32 << 10, defaultWindowBytes / 8 / (32 << 10)},
		"subjects of two first tokens": {"s.x.%d", none, 1, defaultWindow / 8},
		"subjects of one first token":  {"s.%d", none, 1, defaultWindow / 4},
		"with more tokens":             {"s.%d.x", none, 1, defaultWindow / 4},
		"large, of one first token":    {"s.%d", none, 32 << 10, defaultWindowBytes / 4 / (32 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.lookup.api = test.streams
				k.subscribe("ui", nil)
				k.send("ui", message.ModeAuto).check(t, 2*silence, "delivered") // the streams are known
				seen := k.subscribe("s.>", nil)
				results := &count{}
				count := 2 * test.want
				for i := range count {
					subject := test.subject
					if strings.Contains(subject, "%") {
						subject = fmt.Sprintf(subject, i)
					}
					k.Deliver(Message{Target: subject, Mode: message.ModeStream, Size: test.size}, func(Result) { results.add() })
				}
				synctest.Wait()
				if got := seen.get(); got != test.want {
					t.Errorf("%d were sent, want %d", got, test.want)
				}
				time.Sleep(2 * jsapi.Timeout)
				synctest.Wait()
				if got := results.get(); got != count {
					t.Errorf("%d results, want %d", got, count)
				}
				k.checkIdle()
			})
		})
	}
}

// TestSilentLeaveRoom: each silent group takes only a part of the free window. So messages for a group that answers are
// sent immediately, even with many silent groups.
func TestSilentLeaveRoom(t *testing.T) {
	for name, size := range map[string]int{"small": 1, "large": 32 << 10} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
				seen := k.subscribe("*.silent", nil)
				results := &count{}
				const targets = 20
				window := min(defaultWindow, defaultWindowBytes/size)
				want := 0
				for i := range targets {
					for range window / groupDivisor {
						m := Message{Target: fmt.Sprintf("%d.silent", i), Mode: message.ModeStream, Size: size}
						k.Deliver(m, func(Result) { results.add() })
					}
					synctest.Wait()
					if want += max(1, (window-want)/groupDivisor); seen.get() != want {
						t.Fatalf("%d were sent of %d silent groups, want %d", seen.get(), i+1, want)
					}
				}
				for range 50 {
					k.send("orders.a", message.ModeAuto).check(t, 0, "delivered")
				}
				time.Sleep(2 * jsapi.Timeout)
				synctest.Wait()
				if got, want := results.get(), targets*(window/groupDivisor); got != want {
					t.Errorf("%d results, want %d", got, want)
				}
				k.checkIdle()
			})
		})
	}
}

// TestWindow: a group may have one message outstanding even if its share is smaller, but all groups together have at
// most the window outstanding. In the end, all messages are sent.
func TestWindow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		const window = 64
		k.mu.Lock()
		k.groups.window.maxMessages = window
		k.mu.Unlock()
		seen := k.subscribe("*.silent", nil)
		results := &count{}
		for i := range 2 * window {
			k.Deliver(Message{Target: fmt.Sprintf("%d.silent", i), Mode: message.ModeStream}, func(Result) { results.add() })
		}
		synctest.Wait()
		if got := seen.get(); got != window {
			t.Errorf("%d were sent, want the window of %d", got, window)
		}
		time.Sleep(2 * jsapi.Timeout)
		synctest.Wait()
		if got, want := results.get(), 2*window; got != want || seen.get() != want {
			t.Errorf("%d results of %d sent, want %d", got, seen.get(), want)
		}
		k.checkIdle()
	})
}
