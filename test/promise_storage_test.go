package test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

const (
	// outage is longer than all the retries of a target that refuses would take: 1s, 5s and 18 times 30s.
	outage = 20 * time.Minute
	// resumes is how soon there is work again once there is room: the longest wait between two tries in place.
	resumes = 3200 * time.Millisecond
)

// quiet is for hours in which nothing can be stored: what is logged then is shown by TestDeadLettersFull.
var quiet = slog.New(slog.DiscardHandler)

// storage is what an account, or the server, may store.
type storage struct {
	fill, lift func()
	code       jetstream.ErrorCode // of the refusals
}

// accountStorage is the limit of the account for what is in files, accountMemory for what is in memory.
func accountStorage(c *client, s *natstest.Server) storage {
	return accountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxStore = 0 })
}

func accountMemory(c *client, s *natstest.Server) storage {
	return accountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxMemory = 0 })
}

func accountLimit(c *client, s *natstest.Server, reach func(*server.JetStreamAccountLimits)) storage {
	limit := func(change func(*server.JetStreamAccountLimits)) {
		c.t.Helper()
		limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
		change(&limits)
		if err := s.Server().GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
			c.t.Fatalf("change the account's limits: %v", err)
		}
	}
	return storage{code: 10002, fill: func() { limit(reach) }, lift: func() { limit(func(*server.JetStreamAccountLimits) {}) }}
}

// serverStorage is the limit of the server, which must be small: another stream takes it all, and gives it back.
func serverStorage(c *client) storage {
	c.target("OTHER", "other")
	return storage{code: 10023, fill: func() {
		for c.tryPublish("other", string(make([]byte, 64<<10))) == nil {
		}
	}, lift: func() {
		c.t.Helper()
		if err := c.js.DeleteStream(context.Background(), "OTHER"); err != nil {
			c.t.Fatalf("delete: %v", err)
		}
	}}
}

// tryPublish is publish where a refusal is expected.
func (c *client) tryPublish(subject, body string) error {
	_, err := c.js.Publish(context.Background(), subject, []byte(body))
	return err
}

// checkFull fails unless the account stores nothing.
func (c *client) checkFull(st storage) {
	c.t.Helper()
	err := c.tryPublish("orders.full", "x")
	var refusal *jetstream.APIError
	if !errors.As(err, &refusal) || refusal.ErrorCode != st.code {
		c.t.Fatalf("a publish answers %v, want the refusal %d", err, st.code)
	}
}

// inLanes is how many messages wait in streams of the broker's that are read.
func (c *client) inLanes() int {
	c.t.Helper()
	n := 0
	list := c.js.ListStreams(context.Background())
	for info := range list.Info() {
		if kind := info.Config.Metadata["delaybroker.kind"]; kind != "" && kind != "dead" {
			n += int(info.State.Msgs)
		}
	}
	return n
}

// TestStorageFullAtDue reaches the storage limit of the account before messages are due, or have to move to another
// level, and lifts it after longer than a target that refuses would be tried for. Until then nothing is purged. Then all
// that was due is delivered at once, without a restart, and nothing is a dead letter: the target has refused nothing,
// there was no room for its answer.
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

// TestStorageFullUntilDue lifts the limit a moment before the first of some messages is due that no level has taken
// meanwhile: wherever in the wait for the next try that falls, none is late.
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

// checkWithin fails unless a stream has so many messages, each once, not before it was due nor after latest.
func (c *client) checkWithin(stream string, count int, latest time.Time) {
	c.t.Helper()
	ids := make(map[string]bool)
	for _, a := range c.arrivals(stream) {
		ids[a.ID] = true
		if a.At.Before(a.Due) || a.At.After(latest) {
			c.t.Errorf("%s came %s after it was due, and %s after the last moment", a.Body, a.At.Sub(a.Due), a.At.Sub(latest))
		}
	}
	if all := c.arrivals(stream); len(ids) != count || len(all) != count {
		c.t.Errorf("%d messages with %d ids arrived, want %d", len(all), len(ids), count)
	}
}

// TestStorageOfServerFull is TestStorageFullAtDue with the limit of the server, and with a broker that is replaced
// meanwhile.
func TestStorageOfServerFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	natstest.DropTimers()
	synctest.Test(t, func(t *testing.T) {
		s := natstest.RunWith(t, server.Options{DontListen: true, JetStream: true, StoreDir: dir, JetStreamMaxStore: 1 << 20})
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

// TestStorageFullForDeadLetters reaches the limit while dead letters and retries have to be stored. What they
// come to is stored when there is room, and once; a target that is there by then gets its message.
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
		for code, want := range map[message.Code]string{message.Expired: "late", message.Undelivered: "refused", message.BadTime: "bad"} {
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

// TestTargetHasNoRoom reaches a limit that the target alone is subject to: it is in memory, the lanes are in files. That is no
// refusal either, for however long. The messages wait in the longest retry lane meanwhile, and say what for.
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
			if why := m.Header.Get(message.HeaderDeferred); !strings.HasPrefix(why, "JetStream has no room: ") || m.Header.Get(message.HeaderAttempts) != "" {
				t.Errorf("a message waits %q after %q attempts, want none, and that there is no room", why, m.Header.Get(message.HeaderAttempts))
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

// TestRetriesHaveNoRoom is the other way round: the target does not exist for longer than all attempts would take, and no
// retry lane has room. What is not stored is no attempt: when the target is there, it gets the message, whether the
// lanes have room or not.
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

// memoryTarget makes a stream in memory for the subjects.
func (c *client) memoryTarget(name string, subjects ...string) {
	c.t.Helper()
	if _, err := c.js.CreateStream(context.Background(), jetstream.StreamConfig{Name: name, Subjects: subjects, Storage: jetstream.MemoryStorage}); err != nil {
		c.t.Fatalf("create stream %s: %v", name, err)
	}
}

// TestSchedulerStuckWhenFull is not about the broker: it shows what the server's own scheduling does in its place, as
// the README says. A schedule that comes due while the account is full is lost sight of until the server restarts, and
// nobody is told. Should this fail after an upgrade, the server has learned it, and the README is to be corrected.
func TestSchedulerStuckWhenFull(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := newClient(t, s)
		if _, err := c.js.CreateStream(context.Background(), jetstream.StreamConfig{
			Name: "ORDERS", Subjects: []string{"schedules.*", "orders.>"}, AllowMsgSchedules: true}); err != nil {
			t.Fatal(err)
		}
		schedule := func(n int, after time.Duration) {
			c.publish(fmt.Sprintf("schedules.%d", n), fmt.Sprint(n), "Nats-Schedule", "@at "+time.Now().Add(after).UTC().Format(time.RFC3339Nano), "Nats-Schedule-Target", "orders.x")
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
			t.Errorf("an hour after there was room again, of four schedules %q have fired; nats-server 2.15.2 fires %q", got, want)
		}
		s.Restart(time.Second)
		time.Sleep(time.Minute)
		if got, want := fired(), "0 1 2 3"; got != want {
			t.Errorf("after a restart, of four schedules %q have fired; nats-server 2.15.2 fires %q", got, want)
		}
	})
}
