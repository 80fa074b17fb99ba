package promises

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// workers are services that count how many requests they work on at the same time.
type workers struct {
	mu        sync.Mutex // guards the fields below
	busy      map[string]int
	mostBusy  map[string]int
	completed map[string]int // by body
}

// serve serves a subject: each request takes the given time. Name returns the name under which a request counts.
func (w *workers) serve(
	t *testing.T, c *harness.Client, subject string, took time.Duration, name func(*nats.Msg) string,
) {
	t.Helper()
	add := func(m *nats.Msg, n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		key := name(m)
		w.busy[key] += n
		w.mostBusy[key] = max(w.mostBusy[key], w.busy[key])
		if n < 0 {
			w.completed[m.Subject+" "+string(m.Data)]++
		}
	}
	if _, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		add(m, 1)
		time.AfterFunc(took, func() {
			add(m, -1)
			_ = m.Respond(nil)
		})
	}); err != nil {
		t.Fatal(err)
	}
	natstest.Flush(t, c.NC)
}

func newWorkers() *workers {
	return &workers{busy: make(map[string]int), mostBusy: make(map[string]int), completed: make(map[string]int)}
}

// check checks that every message of 0 to count-1 was completed exactly once, and that the named requests were never
// more than most at the same time, but sometimes as many.
func (w *workers) check(t *testing.T, target string, count int, name string, most int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range count {
		if n := w.completed[fmt.Sprintf("%s %06d", target, i)]; n != 1 {
			t.Errorf("message %d for %s was worked on %d times, want once", i, target, n)
			return
		}
	}
	if got := w.mostBusy[name]; got != most {
		t.Errorf("%s: %d requests at the same time, want %d", name, got, most)
	}
}

// TestInProgress: a service gets at most so many requests at the same time as DELAY_IN_PROGRESS says, whichever lanes
// the messages come from. A flood for it fills no lane, and delays no other target.
func TestInProgress(t *testing.T) {
	t.Parallel()
	flood := 3000
	if testing.Short() {
		flood = 300
	}
	cfg := broker.Config{
		Deliver: deliver.Modes{Default: message.ModeRequest}, Log: harness.NoLog,
		InProgress: deliver.Maxima{{Pattern: "svc.one", Value: 1}, {Pattern: "svc.*", Value: 5}},
	}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		w := newWorkers()
		w.serve(t, c, "svc.*", 20*time.Millisecond, func(m *nats.Msg) string { return m.Subject })
		w.serve(t, c, "other.x", 20*time.Millisecond, func(m *nats.Msg) string { return m.Subject })
		for i := range flood {
			c.Publish([]string{"delay.1s.svc.one", "delayin.1100ms.svc.one", "delay.3s.svc.one"}[i%3], fmt.Sprintf("%06d", i))
			c.Publish("delay.1s.svc.five", fmt.Sprintf("%06d", i))
		}
		other := c.Subscribe("other.x")
		for i := range 20 {
			c.Publish("delay.1s.other.x", fmt.Sprintf("%06d", i))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Duration(flood)*20*time.Millisecond + 2*time.Minute)
		w.check(t, "svc.one", flood, "svc.one", 1)
		w.check(t, "svc.five", flood, "svc.five", 5)
		w.check(t, "other.x", 20, "other.x", 1)
		for _, a := range other.Arrivals() {
			if late := a.At.Sub(a.Due); late > 3*time.Second {
				t.Errorf("beside the flood, a message for another target is %s late", late)
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestInProgressByKey: the messages of one Delay-Rate-Key share a limit at all targets of a pattern, in different
// groups of targets. Other keys have their own, and a message without a key has the limit of its target.
func TestInProgressByKey(t *testing.T) {
	t.Parallel()
	const each = 100
	cfg := broker.Config{
		Deliver: deliver.Modes{Default: message.ModeRequest}, Log: harness.NoLog,
		InProgress:      deliver.Maxima{{Pattern: "svc.>", Value: 3}},
		InProgressByKey: deliver.Maxima{{Pattern: "svc.>", Value: 1}},
	}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		w := newWorkers()
		w.serve(t, c, "svc.>", 20*time.Millisecond, func(m *nats.Msg) string {
			if key := m.Header.Get("Key"); key != "" {
				return key
			}
			return m.Subject
		})
		for i := range each {
			for _, key := range []string{"acme", "bolt"} {
				target := fmt.Sprintf("svc.%s.%d", key, i%4) // four groups of targets
				c.Publish("delay.1s."+target, fmt.Sprintf("%06d", i/4), message.HeaderRateKey, key, "Key", key)
			}
			c.Publish("delay.1s.svc.plain", fmt.Sprintf("%06d", i))
		}
		time.Sleep(time.Minute)
		for _, key := range []string{"acme", "bolt"} {
			for n := range 4 {
				w.check(t, fmt.Sprintf("svc.%s.%d", key, n), each/4, key, 1)
			}
		}
		w.check(t, "svc.plain", each, "svc.plain", 3)
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestInProgressAfterKill: a killed broker leaves at most its limit of requests behind. The next broker sends them
// again, under their ids, within its own limit.
func TestInProgressAfterKill(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const limit, messages = 2, 60
		cfg := broker.Config{
			Deliver: deliver.Modes{Default: message.ModeRequest}, Instance: "one", Log: harness.NoLog,
			InProgress: deliver.Maxima{{Pattern: "svc.x", Value: limit}},
		}
		c := harness.NewClient(t, s)
		w := newWorkers()
		w.serve(t, c, "svc.x", time.Second, func(m *nats.Msg) string { return m.Subject })
		b := harness.StartBroker(t, s, cfg)
		for i := range messages {
			c.Publish("delay.1s.svc.x", fmt.Sprintf("%06d", i))
		}
		time.Sleep(4500 * time.Millisecond)
		b.Crash()
		harness.StartBroker(t, s, cfg)
		time.Sleep(2 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := w.mostBusy["svc.x"]; got > 2*limit {
			t.Errorf("%d requests at the same time, want at most %d, a half of them of the killed broker", got, 2*limit)
		}
		for i := range messages {
			if w.completed[fmt.Sprintf("svc.x %06d", i)] == 0 {
				t.Errorf("message %d never came", i)
			}
		}
		c.CheckEmpty()
	})
}
