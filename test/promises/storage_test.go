package promises

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

const (
	// outage is longer than the waits between the twenty attempts at a target that refuses, which are 1s, 5s and 17 times
	// 30s.
	outage = 10 * time.Minute
	// maxBackoff is the maximum time from the lifted limit until the broker's next attempt.
	maxBackoff = 3200 * time.Millisecond
)

func accountMemory(c *harness.Client, s *natstest.Server) harness.Limit {
	return harness.AccountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxMemory = 0 })
}

// serverStorage returns the storage limit of the server, which another stream fills. The limit must be small.
func serverStorage(c *harness.Client) harness.Limit {
	c.Target("OTHER", "other")
	return harness.Limit{Code: 10023, Reach: func() {
		for c.TryPublish("other", string(make([]byte, 64<<10))) == nil {
		}
	}, Lift: func() {
		c.T.Helper()
		c.Remove("OTHER")
	}}
}

// checkFull fails unless the server refuses to store a message.
func checkFull(c *harness.Client, st harness.Limit) {
	c.T.Helper()
	err := c.TryPublish("orders.full", "x")
	var refusal *jetstream.APIError
	if !errors.As(err, &refusal) || refusal.ErrorCode != st.Code {
		c.T.Fatalf("the answer to a publish is %v, want the refusal %d", err, st.Code)
	}
}

// checkStored expects all lanes of the broker together to hold this many messages.
func checkStored(c *harness.Client, want int) {
	c.T.Helper()
	n := 0
	for info := range c.JS.ListStreams(context.Background()).Info() {
		if kind := info.Config.Metadata["delaybroker.kind"]; kind != "" && kind != "dead" {
			n += int(c.Waiting(info))
		}
	}
	if n != want {
		c.T.Errorf("the lanes hold %d messages, want %d", n, want)
	}
}

// TestStorageFullAtDue: the account is at its storage limit when messages are due or have to hop. Until the limit is
// lifted, the broker purges nothing. Then it delivers all overdue messages within maxBackoff, without a restart, and
// the others on time. It makes no dead letters, although the limit may last longer than all attempts at a target that
// refuses.
func TestStorageFullAtDue(t *testing.T) {
	natstest.SkipShort(t)
	const count = 20
	tests := map[string]struct {
		subject string        // of the requests
		delay   time.Duration // of the requests
		full    time.Duration // time from the publish until the account is at its limit
		lifted  time.Duration // time from the publish until the limit is lifted
	}{
		"in a level":          {"delay.10s.orders.x", 10 * time.Second, 5 * time.Second, outage},
		"in the intake":       {"delayin.2s500ms.orders.x", 2500 * time.Millisecond, time.Second, outage},
		"before a hop":        {"delayin.2m30s.orders.x", 150 * time.Second, time.Minute, outage},
		"on the wheel":        {"delay.10s.orders.x", 10 * time.Second, 10*time.Second - time.Millisecond, outage},
		"lifted before due":   {"delayin.2m30s.orders.x", 150 * time.Second, time.Minute, 140 * time.Second},
		"lifted when retried": {"delay.10s.orders.x", 10 * time.Second, 5 * time.Second, 15 * time.Second},
	}
	for name, tt := range tests {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			c := harness.StartBroker(t, s, broker.Config{Log: harness.NoLog}).NewClient()
			c.Target("ORDERS", "orders.>")
			account := harness.StorageLimit(c, s)
			start := time.Now()
			c.PublishMany(tt.subject, count)
			time.Sleep(time.Until(start.Add(tt.full)))
			account.Reach()
			checkFull(c, account)
			time.Sleep(time.Until(start.Add(tt.lifted)))
			checkStored(c, count)
			account.Lift()
			latest := start.Add(tt.lifted + maxBackoff)
			if tt.lifted < tt.delay {
				latest = start.Add(tt.delay)
			}
			time.Sleep(maxBackoff + time.Minute)
			checkWithin(c, "ORDERS", count, latest)
			c.CheckEmpty()
		})
	}
}

// TestStorageFullUntilDue: the limit is lifted just before the first of many messages is due, while the broker waits to
// retry their hops. No message is late.
func TestStorageFullUntilDue(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, broker.Config{Log: harness.NoLog}).NewClient()
		c.Target("ORDERS", "orders.>")
		account := harness.StorageLimit(c, s)
		const first, step, count = 150 * time.Second, 20 * time.Millisecond, 200
		start := time.Now()
		for n := range count {
			c.Publish(fmt.Sprintf("delayin.%dms.orders.x", (first+time.Duration(n)*step).Milliseconds()), fmt.Sprint(n))
		}
		time.Sleep(time.Minute)
		account.Reach()
		time.Sleep(time.Until(start.Add(first - time.Millisecond)))
		account.Lift()
		time.Sleep(time.Minute)
		harness.CheckOnTime(t, c.Arrivals("ORDERS"), count)
		c.CheckEmpty()
	})
}

// checkWithin expects count messages in a stream, each stored once, not before its due time, and not after latest.
func checkWithin(c *harness.Client, stream string, count int, latest time.Time) {
	c.T.Helper()
	ids := make(map[string]bool)
	for _, a := range c.Arrivals(stream) {
		ids[a.ID] = true
		if a.At.Before(a.Due) || a.At.After(latest) {
			c.T.Errorf("%s arrived %s after it was due, and %s after the latest time", a.Body, a.At.Sub(a.Due),
				a.At.Sub(latest))
		}
	}
	if all := c.Arrivals(stream); len(ids) != count || len(all) != count {
		c.T.Errorf("%d messages with %d ids arrived, want %d", len(all), len(ids), count)
	}
}

// TestStorageOfServerFull is like TestStorageFullAtDue, with the server's limit. Before the limit is lifted, another
// broker replaces the first.
func TestStorageOfServerFull(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.BubbleWith(t, server.Options{JetStreamMaxStore: 1 << 20}, func(t *testing.T, s *natstest.Server) {
		first, c := harness.Start(t, s, broker.Config{Log: harness.NoLog})
		c.Target("ORDERS", "orders.>")
		disk := serverStorage(c)
		const count = 20
		c.PublishMany("delay.10s.orders.x", count/2)
		c.PublishMany("delayin.2m30s.orders.x", count/2)
		time.Sleep(5 * time.Second)
		disk.Reach()
		checkFull(c, disk)
		time.Sleep(outage)
		first.Stop()
		harness.StartBroker(t, s, broker.Config{Log: harness.NoLog})
		time.Sleep(outage)
		checkStored(c, count)
		disk.Lift()
		lifted := time.Now()
		time.Sleep(time.Minute)
		checkWithin(c, "ORDERS", count, lifted.Add(maxBackoff))
		c.CheckEmpty()
	})
}

// TestStorageFullForDeadLetters: the account is at its limit when the broker has to store dead letters and retries.
// When the limit is lifted, the broker stores each dead letter once, and the target that was missing at the first
// attempt gets its message.
func TestStorageFullForDeadLetters(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		first, c := harness.Start(t, s, broker.Config{Attempts: 3, Log: harness.NoLog})
		c.Target("ORDERS", "orders.>")
		account := harness.StorageLimit(c, s)
		c.Publish("delay.10s.orders.x", "late", message.HeaderExpires, "1m")
		c.Publish("delay.10s.nobody.x", "refused")
		c.Publish("delay.7s.later.x", "retried")
		time.Sleep(7*time.Second + 500*time.Millisecond) // "retried" is in its retry lane
		c.Target("LATER", "later.>")
		first.Stop()
		c.Publish("delayin.soon.orders.x", "bad")
		account.Reach()
		harness.StartBroker(t, s, broker.Config{Attempts: 3, Log: harness.NoLog})
		time.Sleep(outage)
		checkStored(c, 4)
		account.Lift()
		time.Sleep(time.Minute)
		for code, want := range map[message.Code]string{message.Expired: "late", message.Undelivered: "refused",
			message.BadTime: "bad"} {
			harness.CheckBodies(t, c.DeadLetters()[string(code)], want)
		}
		harness.CheckBodies(t, c.Arrivals("LATER"), "retried")
		harness.CheckCount(t, c.Arrivals("ORDERS"), 0)
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestTargetHasNoRoom: only the target's stream has no room, since it is in memory and the lanes are in files. This
// never counts as a refusal, for any duration. The messages wait in the longest retry lane, with the reason.
func TestTargetHasNoRoom(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, broker.Config{Log: harness.NoLog}).NewClient()
		memoryTarget(c, "ORDERS", "orders.>")
		memory := accountMemory(c, s)
		const count = 20
		c.PublishMany("delay.10s.orders.x", count)
		memory.Reach()
		checkFull(c, memory)
		time.Sleep(outage)
		retrying := c.Arrivals("DELAY_RETRY_30s")
		harness.CheckCount(t, retrying, count)
		for _, m := range retrying {
			r := harness.StateOf(t, m.Header)
			if !strings.HasPrefix(r.DeferralReason, "JetStream has no room: ") || r.Attempts > 0 {
				t.Errorf("a message waits because of %q after %d refusals, want lack of room and no refusal", r.DeferralReason,
					r.Attempts)
			}
		}
		memory.Lift()
		lifted := time.Now()
		time.Sleep(time.Minute)
		checkWithin(c, "ORDERS", count, lifted.Add(30*time.Second))
		c.CheckEmpty()
	})
}

// TestRetriesHaveNoRoom: the target is missing for longer than all attempts take, and the retry lanes have no room. An
// attempt does not count unless the retry is stored. When the target exists it gets the messages, although the lanes
// still have no room.
func TestRetriesHaveNoRoom(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, broker.Config{Attempts: 3, Log: harness.NoLog}).NewClient()
		account := harness.StorageLimit(c, s)
		const count = 20
		c.PublishMany("delay.10s.orders.x", count)
		account.Reach()
		time.Sleep(outage)
		memoryTarget(c, "ORDERS", "orders.>")
		there := time.Now()
		time.Sleep(time.Minute)
		checkWithin(c, "ORDERS", count, there.Add(maxBackoff))
		c.CheckEmpty()
	})
}

// memoryTarget creates a stream in memory for these subjects.
func memoryTarget(c *harness.Client, name string, subjects ...string) {
	c.T.Helper()
	c.Create(jetstream.StreamConfig{Name: name, Subjects: subjects, Storage: jetstream.MemoryStorage})
}

// TestSchedulerStuckWhenFull does not test the broker. It proves a statement of the README about the server's own
// scheduling. If the account is full when a schedule is due, the server forgets the schedule until it is published
// again, or the server restarts. If this test fails after an upgrade, a newer server does better, and the README needs
// a correction.
func TestSchedulerStuckWhenFull(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		c.Create(jetstream.StreamConfig{
			Name: "ORDERS", Subjects: []string{"schedules.*", "orders.>"}, AllowMsgSchedules: true})
		schedule := func(n int, after time.Duration) {
			c.Publish(fmt.Sprintf("schedules.%d", n), fmt.Sprint(n), "Nats-Schedule",
				"@at "+time.Now().Add(after).UTC().Format(time.RFC3339Nano), "Nats-Schedule-Target", "orders.x")
		}
		fired := func() string {
			var there []harness.Arrival
			for _, a := range c.Arrivals("ORDERS") {
				if a.Subject == "orders.x" {
					there = append(there, a)
				}
			}
			return harness.Bodies(there)
		}
		account := harness.StorageLimit(c, s)
		for n := range 3 {
			schedule(n, 10*time.Second)
		}
		time.Sleep(5 * time.Second)
		account.Reach()
		checkFull(c, account)
		time.Sleep(10 * time.Second)
		account.Lift()
		schedule(3, 10*time.Second)
		time.Sleep(outage)
		check := func(when, want string) {
			if got := fired(); got != want {
				t.Errorf("%s, %q of four schedules have fired; nats-server 2.15.3 fires %q", when, got, want)
			}
		}
		check("ten minutes after the limit was lifted", "3")
		schedule(0, time.Second)
		time.Sleep(outage)
		check("ten minutes after one was published again", "0 3")
		s.Restart(time.Second)
		time.Sleep(time.Minute)
		check("after a restart", "0 1 2 3")
	})
}
