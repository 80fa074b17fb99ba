package promises

import (
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestSilentTargetSlowsNobody publishes more messages for a target that never acknowledges than the lane may hold. A
// message for a healthy target in the same lane is still on time.
func TestSilentTargetSlowsNobody(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, broker.Config{HoldMessages: 2 << 10}, func(t *testing.T, c *harness.Client) {
		c.SilentTarget("silent.x")
		c.Target("ORDERS", "orders.>")
		for range 30 { // takes 3 s, less than the 5 s until the first refusal
			c.PublishMany("delayin.100ms.silent.x", 500, message.HeaderDeliver, "stream")
			time.Sleep(100 * time.Millisecond)
		}
		start := time.Now()
		c.Publish("delayin.100ms.orders.x", "healthy")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := c.Arrivals("ORDERS"); len(got) != 1 || !got[0].At.Equal(start.Add(100*time.Millisecond)) {
			t.Errorf("the healthy target has %d messages at the due time of its message, want 1", len(got))
		}
	})
}

// TestTroubleBesideHealthy runs a healthy target under load beside four other targets: a full stream, a missing stream,
// a subscriber that never acknowledges, and a service that never replies. The healthy target gets each message exactly
// at its due time. No message for the other targets is lost: each becomes one dead letter, or was stored before the
// stream was full.
func TestTroubleBesideHealthy(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const attempts, count, room = 3, 500, 20
	cfg := broker.Config{Attempts: attempts, Log: slog.New(slog.DiscardHandler)}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		c.Create(jetstream.StreamConfig{
			Name: "FULL", Subjects: []string{"full.>"}, Discard: jetstream.DiscardNew, MaxMsgs: room})
		c.SilentTarget("silent.x")
		c.SilentTarget("mute.x")
		for i := range count {
			c.Publish("delay.1s.orders.x", fmt.Sprint(i))
			c.Publish("delay.1s.full.x", fmt.Sprint(i))
			c.Publish("delay.1s.nobody.x", fmt.Sprint(i))
			c.Publish("delay.1s.silent.x", fmt.Sprint(i), message.HeaderDeliver, "stream")
			c.Publish("delay.1s.mute.x", fmt.Sprint(i), message.HeaderDeliver, "request")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		healthy := c.Arrivals("ORDERS")
		harness.CheckOnTime(t, healthy, count)
		ends := map[string]int{"ORDERS": len(healthy), "FULL": len(c.Arrivals("FULL"))}
		ids := make(map[string]bool)
		for _, a := range append(healthy, c.Arrivals("FULL")...) {
			ids[a.ID] = true
		}
		for code, letters := range c.DeadLetters() {
			for _, a := range letters {
				ids[a.ID] = true
				ends[a.Subject]++
				if got := a.Header.Get(message.HeaderAttempts); code != string(message.Undelivered) ||
					got != fmt.Sprint(attempts) {
					t.Errorf("a dead letter %s after %s attempts, want %s after %d", code, got, message.Undelivered,
						attempts)
				}
			}
		}
		want := map[string]int{"ORDERS": count, "FULL": room, "delaydead.undelivered.full.x": count - room,
			"delaydead.undelivered.nobody.x": count, "delaydead.undelivered.silent.x": count,
			"delaydead.undelivered.mute.x": count}
		if !maps.Equal(ends, want) || len(ids) != 5*count {
			t.Errorf("%d messages ended as %v, want %d as %v", len(ids), ends, 5*count, want)
		}
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestCrashRepeatsLittle: an undeliverable message is before many delivered messages of a lane. Still, a crash repeats
// only the deliveries of the last seconds: of a target with few messages, those of the last 5.2 s, of another target
// those of the last quarter of a second. A clean stop repeats none.
func TestCrashRepeatsLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate, targets int // messages in a tenth of a second, and the targets that take turns
		max           int // repeats after a crash
	}{{1, 1, 16}, {1, 100, 52}, {100, 1, 250}, {100, 3, 250}} {
		if tt.rate > 1 && testing.Short() {
			continue
		}
		for _, crash := range []bool{true, false} {
			natstest.Subtest(t, fmt.Sprintf("%+v, crash %t", tt, crash), func(t *testing.T, s *natstest.Server) {
				const tenths = 140 // while the first message is undelivered
				b, c := harness.Start(t, s, broker.Config{})
				c.SilentTarget("silent.x")
				in := c.Subscribe("orders.>")
				c.Publish("delayin.100ms.silent.x", "stuck", message.HeaderDeliver, "stream")
				for n := range tenths {
					c.PublishMany(fmt.Sprint("delayin.10ms.orders.", n%tt.targets), tt.rate)
					time.Sleep(100 * time.Millisecond)
				}
				most := tt.max
				if crash {
					b.Crash()
				} else {
					b.Stop()
					most = 0
				}
				before := len(in.Arrivals())
				harness.StartBroker(t, s, broker.Config{})
				time.Sleep(time.Second)
				if again := len(in.Arrivals()) - before; before != tt.rate*tenths || again > most {
					t.Errorf("%d of %d messages were delivered again, want at most %d", again, before, most)
				}
			})
		}
	}
}

// TestCleanStopAfterReconnect restarts the server, and thus replaces a lane's consumer, while the owner reads nothing,
// because it holds 256 messages that are not due soon. Delivered messages are still removed, and a clean stop repeats
// none.
func TestCleanStopAfterReconnect(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, c := harness.Start(t, s, broker.Config{})
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.PublishMany("delay.1h.orders.a", 300)
		time.Sleep(30 * time.Minute)
		c.PublishMany("delay.1h.orders.b", 700)
		time.Sleep(time.Minute)
		s.Restart(time.Second)
		time.Sleep(time.Until(start.Add(time.Hour + 10*time.Minute)))
		level := c.Stream("DELAY_1h")
		if got := level.CachedInfo().State.Msgs; got != 700 {
			t.Errorf("ten minutes after 300 deliveries the level has %d messages, want 700", got)
		}
		b.Stop()
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(30 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 1000)
		c.CheckEmpty()
	})
}

// TestLateAcknowledgement: a level stores messages but does not acknowledge. The broker repeats the hop into the same
// level, which recognises the duplicate. Another level could not recognise it.
func TestLateAcknowledgement(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, broker.Config{Ladder: harness.Ladder(t, "1s 20s 30s")}, func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		for _, mute := range []bool{true, false} {
			c.Reconfigure("DELAY_30s", func(cfg *jetstream.StreamConfig) { cfg.NoAck = mute })
			if mute {
				c.Publish("delayin.34s.orders.x", "x")
				time.Sleep(3 * time.Second)
			}
		}
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 1)
		c.CheckNoDead()
	})
}

// TestDeadLettersFull: while the stream of dead letters is full, the log has few lines and no message is lost. The
// broker stores the letters when the stream has room.
func TestDeadLettersFull(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		c := harness.StartBroker(t, s, broker.Config{Log: slog.New(log)}).NewClient()
		hold := func(n int64) {
			c.Reconfigure("DELAY_DEAD", func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = n })
		}
		hold(1)
		const bad = 500
		c.PublishMany("delayin.soon.orders.x", bad)
		time.Sleep(time.Minute)
		if got := log.CountPrefix(""); got > 100 {
			t.Errorf("%d lines in a minute, want at most 100", got)
		}
		hold(-1)
		time.Sleep(time.Minute)
		harness.CheckCount(t, c.DeadLetters()[string(message.BadTime)], bad)
	})
}
