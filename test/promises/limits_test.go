package promises

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFloodOfOneTarget publishes 3,000 messages with the same due time, for a target with a rate of 50 a second. They
// arrive at exactly that rate, also after a restart of the broker. For other targets, a hundred messages are due at the
// same time, and another hundred, one a second. All are on time.
func TestFloodOfOneTarget(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const flood, rate, others = 3000, 50, 100
	cfg := broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}, HoldMessages: 256}
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		slow, fast := c.Subscribe("slow.>"), c.Subscribe("orders.>")
		due := time.Now().Add(10 * time.Second)
		c.PublishMany("delay.10s.slow.x", flood)
		for i := range others {
			c.Publish("delay.10s.orders.x", strconv.Itoa(i))
			c.Publish(fmt.Sprintf("delayin.%dms.orders.y", 10_000+997*i), strconv.Itoa(i))
		}
		time.Sleep(time.Until(due.Add(29*time.Second + 999*time.Millisecond)))
		synctest.Wait()
		harness.CheckCount(t, slow.Arrivals(), 30*rate)
		stopped := time.Now()
		b.Stop()
		b.Replace()
		restarted := time.Now()
		time.Sleep(10 * time.Minute)
		got := slow.Arrivals()
		harness.CheckCount(t, got, flood)
		for i, a := range got {
			want := due.Add(time.Duration(i) * time.Second / rate)
			if first := 30 * rate; want.After(stopped) { // a restarted broker assigns new send times
				want = restarted.Add(time.Duration(i-first) * time.Second / rate)
			}
			if !a.At.Equal(want) {
				t.Fatalf("message %d of the flood arrived %s after it was due, want %s", i, a.At.Sub(due), want.Sub(due))
			}
		}
		harness.CheckOnTime(t, fast.Arrivals(), 2*others)
		c.CheckEmpty()
	})
}

// TestPendingLimits: a full level refuses messages of clients. A message whose next level is full is still on time. If
// the new limit of a level is below its number of messages, no message is removed.
func TestPendingLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, c := harness.Start(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m 10m"), MaxPending: 100})
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delayin.21m.orders.x", "chained") // the second hop of this message is into a full level
		synctest.Wait()
		for range 99 {
			c.Publish("delay.10m.orders.x", "x")
		}
		err := c.TryPublish("delay.10m.orders.x", "one too many")
		if err == nil || !strings.Contains(err.Error(), "maximum messages exceeded") {
			t.Errorf("got %v, want a refusal with the reason", err)
		}
		b.Stop()
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m 10m"), MaxPending: 10})
		level := c.Stream("DELAY_10m")
		if info := level.CachedInfo(); info.State.Msgs != 100 || info.Config.MaxMsgs != 10 {
			t.Errorf("the level has %d messages and the limit %d, want 100 and 10", info.State.Msgs, info.Config.MaxMsgs)
		}
		harness.CheckExactly(t, in, start.Add(21*time.Minute), 99)
		harness.CheckBodies(t, in.Arrivals(), "chained x×99")
		harness.CheckOnTime(t, in.Arrivals(), 100)
		c.CheckNoDead()
	})
}

// TestTooLargeToRetry: a message fits into its level as the client publishes it, but not with the headers that the
// broker adds. After its first refusal, no retry lane accepts it, and it becomes a dead letter.
func TestTooLargeToRetry(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{Attempts: 3}, func(t *testing.T, c *harness.Client) {
		in := runFailing(c, "svc", forever)
		c.Publish("delay.1s.svc", strings.Repeat("x", int(c.NC.MaxPayload())-4096-200), message.HeaderDeliver,
			"request")
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 1)
		harness.CheckCount(t, c.DeadLetters()[string(message.TooLarge)], 1)
	})
}

// TestRateAfterOutage: messages wait while their target's stream has no room. Afterwards the broker delivers them
// within the rate.
func TestRateAfterOutage(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const rate, outage, flood = 2, 3 * time.Minute, 800
	cfg := broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		start := time.Now()
		asked := make(map[time.Duration]int)
		natstest.Handle(t, c.NC, "slow.x", func(m *nats.Msg) {
			now := time.Since(start)
			asked[now.Truncate(time.Second)]++
			answer := `{"stream":"S", "seq":7}`
			if now < outage {
				answer = `{"error":{"code":500,"err_code":10047,"description":"no storage left"}}`
			}
			_ = m.Respond([]byte(answer))
		})
		c.PublishMany("delay.10s.slow.x", flood)
		time.Sleep(20 * time.Minute) // longer than the outage and the 400 s that the flood needs at the rate
		for second, n := range asked {
			if n > rate {
				t.Fatalf("in second %s the target got %d requests, want at most %d", second, n, rate)
			}
		}
		c.CheckEmpty()
	})
}

// TestRateOfTheLargest: messages of the largest size that a level accepts leave no room for the headers of a retry
// lane. If only the target's rate delays them, they need no retry lane: they wait in their level.
func TestRateOfTheLargest(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: 1}},
		Ladder: harness.Ladder(t, "1s 5s 10s")}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		slow := c.Subscribe("slow.>")
		due := time.Now().Add(5 * time.Second)
		const count = 10
		body := strings.Repeat("x", 1<<20-4<<10)
		for range count {
			c.Publish("delay.5s.slow.x", body)
		}
		time.Sleep(10 * time.Minute)
		got := slow.Arrivals()
		for i, a := range got {
			if want := due.Add(time.Duration(i) * time.Second); !a.At.Equal(want) || a.Body != body {
				t.Errorf("number %d, of %d bytes, arrived at %s, want %s", i, len(a.Body), a.At, want)
			}
		}
		harness.CheckCount(t, got, count)
		c.CheckEmpty()
	})
}
