package pauses

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestPausedWaitsAndGoesOutInOrder: one of two targets is paused, with 1,000 messages a second for each. Its due
// messages wait, also through restarts of the broker and the server. After the resumption, they arrive in the order of
// their due times. Messages that become due during the resumption arrive after them, and later messages on time. The
// other target gets each message at its due time. The waiting messages take little memory.
func TestPausedWaitsAndGoesOutInOrder(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := harness.StartBroker(t, s, broker.Config{})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		c.Target("MAIL", "mail.>")
		harness.MustPause(t, o, "orders.>")
		count, others := 0, 0
		send := func(n int, delay string, both bool) {
			for range n {
				publishNumber(c, count, delay+".orders.x")
				if both {
					publishNumber(c, count, delay+".mail.x")
					others++
				}
				count++
				time.Sleep(time.Millisecond)
			}
		}
		send(3000, "delay.1s", true)
		for _, l := range a.Broker.Status().Lanes {
			if l.Held > 2100 {
				t.Errorf("%s holds %d messages in memory, want at most 2100: paused messages take no memory", l.Stream, l.Held)
			}
		}
		time.Sleep(2 * time.Second)
		harness.CheckOnTime(t, c.Arrivals("MAIL"), others)
		send(500, "delay.1s", false)
		a.Crash()
		natstest.Flush(t, c.NC)
		c.NC.Close() // no client reconnects: see natstest.DropTimers
		o.Conn.Close()
		s.Restart(time.Second)
		a = harness.StartBroker(t, s, broker.Config{})
		c, o = harness.NewClient(t, s), harness.Operator(t, s)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		harness.CheckCount(t, c.Arrivals("ORDERS"), 0)
		st := a.Broker.Status()
		if !st.Ready || len(st.Pauses) != 1 || st.Pauses[0].Pattern != "orders.>" || st.PausedMessages != uint64(count) {
			t.Errorf("ready %v, paused %+v, %d wait; want ready, orders.> and %d", st.Ready, st.Pauses, st.PausedMessages, count)
		}
		harness.MustResume(t, o, "orders.>")
		send(3000, "delayin.500ms", false) // these messages become due while the broker delivers the waiting messages
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckInOrder(t, got, count)
		harness.CheckOnTime(t, got[count-500:], 500)
		c.CheckEmpty()
	})
}

// TestNothingSentAfterPause: after pause has returned, the broker sends nothing more to a slow service, although it has
// messages for the service in memory.
func TestNothingSentAfterPause(t *testing.T) {
	t.Parallel()
	bubble(t, broker.Config{HoldMessages: 1024}, func(t *testing.T, c *harness.Client, o *inspect.Inspector) {
		c.SlowService("svc.x", 300)
		in := c.Subscribe("svc.x")
		c.PublishMany("delay.1s.svc.x", 3000, message.HeaderDeliver, "request")
		time.Sleep(1500 * time.Millisecond) // other messages wait in the service and in the broker
		harness.MustPause(t, o, "svc.>")
		synctest.Wait()
		before := len(in.Arrivals())
		time.Sleep(time.Minute)
		if after := len(in.Arrivals()); after != before || before == 0 || before == 3000 {
			t.Errorf("%d messages had been sent when pause returned, %d a minute later", before, after)
		}
		c.CheckNoDead()
	})
}

// TestPausedByAllInstances: two instances run, and both keep the due messages of the paused target. An
// instance that crashes and starts again reads the list of pauses before its first message. After the resumption, no
// message arrives after one that was due more than 50 ms later.
func TestPausedByAllInstances(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 10s"), Leaser: harness.Together}
		a, _ := harness.StartBroker(t, s, cfg), harness.StartBroker(t, s, cfg)
		time.Sleep(12 * time.Second)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		change, err := o.Pause(context.Background(), "orders.>", pause.Hours{})
		if err != nil || len(change.Confirmed) != 2 || len(change.Unconfirmed) != 0 {
			t.Fatalf("%+v, %v, want the confirmation of two instances", change, err)
		}
		count := 0
		send := func(n int) {
			for range n {
				for _, delay := range []string{"delay.1s", "delay.5s", "delayin.3s"} {
					c.Publish(delay+".orders.x", "")
					count++
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		send(100)
		a.Crash()
		send(100)
		harness.StartBroker(t, s, cfg)
		send(100)
		time.Sleep(time.Minute)
		harness.CheckCount(t, c.Arrivals("ORDERS"), 0)
		harness.MustResume(t, o, "orders.>")
		send(300)
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckCount(t, got, count)
		var latest time.Time
		for i, m := range got {
			if latest.Sub(m.Due) > 50*time.Millisecond {
				t.Fatalf("message %d was due at %s, and arrived after one that was due at %s", i, m.Due, latest)
			}
			if m.Due.After(latest) {
				latest = m.Due
			}
		}
		c.CheckEmpty()
	})
}

// TestPausedCountsNoAttempts: a pause counts as no attempt of a refused message that is in a retry lane when its target
// is paused.
func TestPausedCountsNoAttempts(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, o := start(t, s, broker.Config{Attempts: 3})
		ack := c.Publish("delay.1s.orders.x", "refused", message.HeaderDeliver, "stream")
		time.Sleep(1500 * time.Millisecond) // the target has no stream, and the message waits for its second attempt
		harness.MustPause(t, o, "orders.>")
		time.Sleep(10 * time.Minute)
		ref := harness.MustMessageRef(t, fmt.Sprintf("%s-%d", ack.Stream, ack.Sequence))
		w, err := o.Where(context.Background(), ref, 100, func(uint64, uint64) {})
		if err != nil || w.Stream != "DELAY_PAUSED" || w.Attempts != 1 || !strings.Contains(w.Answer, "paused since") {
			t.Errorf("after ten minutes, the message is %+v, %v; want one attempt, in DELAY_PAUSED", w, err)
		}
		c.CheckNoDead()
		c.Target("ORDERS", "orders.>")
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")
		if len(got) != 1 || got[0].Header.Get(message.HeaderAttempts) != "1" {
			t.Errorf("got %+v, want one delivery after one refusal", got)
		}
	})
}

// TestPausedExpires: the broker checks Delay-Expires only when the target is resumed. An expired message becomes a dead
// letter.
func TestPausedExpires(t *testing.T) {
	t.Parallel()
	bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client, o *inspect.Inspector) {
		harness.MustPause(t, o, "orders.>")
		c.Publish("delay.1s.orders.x", "short", message.HeaderExpires, "10m")
		c.Publish("delay.1s.orders.x", "long", message.HeaderExpires, "2h")
		time.Sleep(10*time.Minute + time.Second)
		c.CheckNoDead()
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "long")
		harness.CheckBodies(t, c.DeadLetters()["expired"], "short")
	})
}

// TestTimersOfPausedTarget: timers that become due for a paused target fire into the lane of the pause. After the
// resumption, the target gets each timer once, in the order of due times. It never gets a timer that was cancelled
// before its due time.
func TestTimersOfPausedTarget(t *testing.T) {
	t.Parallel()
	bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, o *inspect.Inspector) {
		c.Publish("delaytimer.far.orders.x", "000001", "Delay-For", "10m")
		cancelled := c.PublishIf(0, "delaytimer.gone.orders.x", "never", "Delay-For", "10m")
		harness.MustPause(t, o, "orders.>")
		c.Publish("delaytimer.near.orders.x", "000000", "Delay-For", "2s")
		if c.PublishIf(cancelled, "delaytimer.gone.orders.x", "", "Delay-Cancel", "paid") == 0 {
			t.Error("the cancel of a timer for a paused target failed before the due time")
		}
		time.Sleep(20 * time.Minute)
		harness.CheckCount(t, c.Arrivals("ORDERS"), 0)
		harness.MustResume(t, o, "orders.>")
		time.Sleep(5 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("ORDERS"), 2)
		c.CheckNoTimers()
	})
}
