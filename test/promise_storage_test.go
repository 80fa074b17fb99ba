package test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

const (
	// outage is longer than all attempts at a target that refuses: 1s, 5s and 18 times 30s between them.
	outage = 10 * time.Minute
	// resumes is how soon the broker works again when there is room: the longest pause between two tries.
	resumes = 3200 * time.Millisecond
)

// quiet is the log where nothing can be stored for hours. TestDeadLettersFull checks what is logged then.
var quiet = slog.New(slog.DiscardHandler)

// storage is a limit that a test can reach and lift.
type storage struct {
	fill, lift func()
	code       jetstream.ErrorCode // of the refusals
}

// accountStorage is the account's limit for file storage, accountMemory that for memory storage.
func accountStorage(c *client, s *natstest.Server) storage {
	return accountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxStore = 0 })
}

func accountMemory(c *client, s *natstest.Server) storage {
	return accountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxMemory = 0 })
}

func accountLimit(c *client, s *natstest.Server, reach func(*server.JetStreamAccountLimits)) storage {
	limit := func(change func(*server.JetStreamAccountLimits)) {
		c.t.Helper()
		limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1,
			MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
		change(&limits)
		all := map[string]server.JetStreamAccountLimits{"": limits}
		if err := s.Server().GlobalAccount().UpdateJetStreamLimits(all); err != nil {
			c.t.Fatalf("change the account's limits: %v", err)
		}
	}
	return storage{code: 10002, fill: func() { limit(reach) },
		lift: func() { limit(func(*server.JetStreamAccountLimits) {}) }}
}

// serverStorage is the server's own limit, which must be small: another stream fills it.
func serverStorage(c *client) storage {
	c.target("OTHER", "other")
	return storage{code: 10023, fill: func() {
		for c.tryPublish("other", string(make([]byte, 64<<10))) == nil {
		}
	}, lift: func() {
		c.t.Helper()
		c.remove("OTHER")
	}}
}

// tryPublish is a publish that may be refused.
func (c *client) tryPublish(subject, body string) error {
	_, err := c.js.Publish(context.Background(), subject, []byte(body))
	return err
}

// checkFull fails unless the server refuses to store a message.
func (c *client) checkFull(st storage) {
	c.t.Helper()
	err := c.tryPublish("orders.full", "x")
	var refusal *jetstream.APIError
	if !errors.As(err, &refusal) || refusal.ErrorCode != st.code {
		c.t.Fatalf("a publish answers %v, want the refusal %d", err, st.code)
	}
}

// inLanes is the number of messages in all lanes of the broker.
func (c *client) inLanes() int {
	c.t.Helper()
	n := 0
	list := c.js.ListStreams(context.Background())
	for info := range list.Info() {
		if kind := info.Config.Metadata["delaybroker.kind"]; kind != "" && kind != "dead" {
			n += int(c.waiting(info))
		}
	}
	return n
}

// TestStorageFullAtDue: the account's storage limit is reached before messages are due, or before they have to hop, and
// lifted after longer than all attempts at a target that refuses. Until then nothing is purged. Then everything that
// was due is delivered at once, without a restart and without dead letters: there was no room for the messages, but no
// target has refused them.
func TestStorageFullAtDue(t *testing.T) {
	const count = 20
	tests := map[string]struct {
		subject string        // of the requests
		delay   time.Duration // what they ask for
		full    time.Duration // after the publish
		lifted  time.Duration
	}{
		"in a level":          {"delay.10s.orders.x", 10 * time.Second, 5 * time.Second, outage},
		"in the intake":       {"delayin.2s500ms.orders.x", 2500 * time.Millisecond, time.Second, outage},
		"before a hop":        {"delayin.2m30s.orders.x", 150 * time.Second, time.Minute, outage},
		"on the wheel":        {"delay.10s.orders.x", 10 * time.Second, 10*time.Second - time.Millisecond, outage},
		"lifted before due":   {"delayin.2m30s.orders.x", 150 * time.Second, time.Minute, 140 * time.Second},
		"lifted when retried": {"delay.10s.orders.x", 10 * time.Second, 5 * time.Second, 15 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				startBroker(t, s, broker.Config{Log: quiet})
				c := newClient(t, s)
				c.target("ORDERS", "orders.>")
				account := accountStorage(c, s)
				start := time.Now()
				c.many(tt.subject, count)
				time.Sleep(time.Until(start.Add(tt.full)))
				account.fill()
				c.checkFull(account)
				time.Sleep(time.Until(start.Add(tt.lifted)))
				if got := c.inLanes(); got != count {
					t.Errorf("while nothing can be stored the lanes hold %d messages, want all %d", got, count)
				}
				account.lift()
				latest := start.Add(max(tt.delay, tt.lifted+resumes))
				if tt.lifted < tt.delay {
					latest = start.Add(tt.delay)
				}
				time.Sleep(resumes + time.Minute)
				c.checkWithin("ORDERS", count, latest)
				c.checkNoDead()
				c.checkEmpty()
			})
		})
	}
}

// TestStorageFullUntilDue: the limit is lifted just before the first of many messages is due. They all wait for their
// hop and are tried again at intervals. None is late, wherever in such an interval the limit is lifted.
func TestStorageFullUntilDue(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Log: quiet})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		account := accountStorage(c, s)
		const first, step, count = 150 * time.Second, 20 * time.Millisecond, 200
		start := time.Now()
		for n := range count {
			c.publish(fmt.Sprintf("delayin.%dms.orders.x", (first+time.Duration(n)*step).Milliseconds()), fmt.Sprint(n))
		}
		time.Sleep(time.Minute)
		account.fill()
		time.Sleep(time.Until(start.Add(first - time.Millisecond)))
		account.lift()
		time.Sleep(time.Minute)
		all := c.arrivals("ORDERS")
		if len(all) != count {
			t.Errorf("%d arrived, want %d", len(all), count)
		}
		for _, a := range all {
			if late := a.At.Sub(a.Due); late != 0 {
				t.Errorf("%s came %s after it was due", a.Body, late)
			}
		}
		c.checkNoDead()
		c.checkEmpty()
	})
}

// checkWithin fails unless a stream has this many messages, each once, none early and none after latest.
func (c *client) checkWithin(stream string, count int, latest time.Time) {
	c.t.Helper()
	ids := make(map[string]bool)
	for _, a := range c.arrivals(stream) {
		ids[a.ID] = true
		if a.At.Before(a.Due) || a.At.After(latest) {
			c.t.Errorf("%s came %s after it was due, and %s after the last moment", a.Body, a.At.Sub(a.Due),
				a.At.Sub(latest))
		}
	}
	if all := c.arrivals(stream); len(ids) != count || len(all) != count {
		c.t.Errorf("%d messages with %d ids arrived, want %d", len(all), len(ids), count)
	}
}

// TestStorageOfServerFull is TestStorageFullAtDue with the server's limit, and with a broker that is replaced
// meanwhile.
func TestStorageOfServerFull(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, server.Options{JetStreamMaxStore: 1 << 20}, func(t *testing.T, s *natstest.Server) {
		first := startBroker(t, s, broker.Config{Log: quiet})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		disk := serverStorage(c)
		const count = 20
		c.many("delay.10s.orders.x", count/2)
		c.many("delayin.2m30s.orders.x", count/2)
		time.Sleep(5 * time.Second)
		disk.fill()
		c.checkFull(disk)
		time.Sleep(outage)
		first.stop()
		startBroker(t, s, broker.Config{Log: quiet})
		time.Sleep(outage)
		if got := c.inLanes(); got != count {
			t.Errorf("while nothing can be stored the lanes hold %d messages, want all %d", got, count)
		}
		disk.lift()
		lifted := time.Now()
		time.Sleep(time.Minute)
		c.checkWithin("ORDERS", count, lifted.Add(resumes))
		c.checkNoDead()
		c.checkEmpty()
	})
}

// TestStorageFullForDeadLetters: the limit is reached before dead letters and retries have to be stored. They are
// stored once when there is room, and a target that exists by then gets its message.
func TestStorageFullForDeadLetters(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		first := startBroker(t, s, broker.Config{Attempts: 3, Log: quiet})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		account := accountStorage(c, s)
		c.publish("delay.10s.orders.x", "late", message.HeaderExpires, "1m")
		c.publish("delay.10s.nobody.x", "refused")
		c.publish("delay.7s.later.x", "retried")
		time.Sleep(7*time.Second + 500*time.Millisecond) // in its retry lane
		c.target("LATER", "later.>")
		first.stop()
		c.publish("delayin.soon.orders.x", "bad")
		account.fill()
		startBroker(t, s, broker.Config{Attempts: 3, Log: quiet})
		time.Sleep(outage)
		if got := c.inLanes(); got != 4 {
			t.Errorf("while nothing can be stored the lanes hold %d messages, want all 4", got)
		}
		account.lift()
		time.Sleep(time.Minute)
		for code, want := range map[message.Code]string{message.Expired: "late", message.Undelivered: "refused",
			message.BadTime: "bad"} {
			if got := bodies(c.dead()[string(code)]); got != want {
				t.Errorf("dead letters %s: %q, want %q", code, got, want)
			}
		}
		if got := bodies(c.arrivals("LATER")); got != "retried" {
			t.Errorf("what waited for its second attempt arrived as %q, want it once", got)
		}
		if got := len(c.arrivals("ORDERS")); got != 0 {
			t.Errorf("%d arrived after Delay-Expires, want none", got)
		}
		if got := c.inLanes(); got != 0 {
			t.Errorf("the lanes still hold %d messages", got)
		}
	})
}

// TestTargetHasNoRoom: only the target's stream has no room, since it is in memory and the lanes are in files. However
// long that lasts, it does not count as a refusal. Meanwhile the messages wait in the longest retry lane, and say why.
func TestTargetHasNoRoom(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Log: quiet})
		c := newClient(t, s)
		c.memoryTarget("ORDERS", "orders.>")
		memory := accountMemory(c, s)
		const count = 20
		c.many("delay.10s.orders.x", count)
		memory.fill()
		c.checkFull(memory)
		time.Sleep(outage)
		for _, m := range c.arrivals("DELAY_RETRY_30s") {
			why, refusals := m.Header.Get(message.HeaderDeferred), m.Header.Get(message.HeaderAttempts)
			if !strings.HasPrefix(why, "JetStream has no room: ") || refusals != "" {
				t.Errorf("a message waits %q after %q attempts, want none, and that there is no room", why, refusals)
			}
		}
		memory.lift()
		lifted := time.Now()
		time.Sleep(time.Minute)
		c.checkWithin("ORDERS", count, lifted.Add(30*time.Second))
		c.checkNoDead()
		c.checkEmpty()
	})
}

// TestRetriesHaveNoRoom is the opposite: the target is missing for longer than all attempts take, and the retry lanes
// have no room. An attempt does not count unless the retry is stored. When the target exists it gets the messages,
// although the lanes still have no room.
func TestRetriesHaveNoRoom(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Attempts: 3, Log: quiet})
		c := newClient(t, s)
		account := accountStorage(c, s)
		const count = 20
		c.many("delay.10s.orders.x", count)
		account.fill()
		time.Sleep(outage)
		c.memoryTarget("ORDERS", "orders.>")
		there := time.Now()
		time.Sleep(time.Minute)
		c.checkWithin("ORDERS", count, there.Add(resumes))
		c.checkNoDead()
		c.checkEmpty()
	})
}

// memoryTarget creates a stream in memory for these subjects.
func (c *client) memoryTarget(name string, subjects ...string) {
	c.t.Helper()
	c.create(jetstream.StreamConfig{Name: name, Subjects: subjects, Storage: jetstream.MemoryStorage})
}

// TestSchedulerStuckWhenFull does not test the broker. It shows what the README says about the server's own scheduling:
// if the account is full when a schedule is due, the server forgets the schedule until its next restart, and reports
// nothing. If this test fails after an upgrade, a newer server does better, and the README needs a correction.
func TestSchedulerStuckWhenFull(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := newClient(t, s)
		c.create(jetstream.StreamConfig{
			Name: "ORDERS", Subjects: []string{"schedules.*", "orders.>"}, AllowMsgSchedules: true})
		schedule := func(n int, after time.Duration) {
			c.publish(fmt.Sprintf("schedules.%d", n), fmt.Sprint(n), "Nats-Schedule",
				"@at "+time.Now().Add(after).UTC().Format(time.RFC3339Nano), "Nats-Schedule-Target", "orders.x")
		}
		fired := func() string {
			var there []arrival
			for _, a := range c.arrivals("ORDERS") {
				if a.Subject == "orders.x" {
					there = append(there, a)
				}
			}
			return bodies(there)
		}
		account := accountStorage(c, s)
		for n := range 3 {
			schedule(n, 10*time.Second)
		}
		time.Sleep(5 * time.Second)
		account.fill()
		c.checkFull(account)
		time.Sleep(10 * time.Second)
		account.lift()
		schedule(3, 10*time.Second)
		time.Sleep(outage)
		if got, want := fired(), "3"; got != want {
			t.Errorf("with room for ten minutes, of four schedules %q have fired; nats-server 2.15.2 fires %q",
				got, want)
		}
		s.Restart(time.Second)
		time.Sleep(time.Minute)
		if got, want := fired(), "0 1 2 3"; got != want {
			t.Errorf("after a restart, of four schedules %q have fired; nats-server 2.15.2 fires %q", got, want)
		}
	})
}
