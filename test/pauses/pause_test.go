package pauses

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// checkPunctual expects each arrival at its due time.
func checkPunctual(t *testing.T, got []harness.Arrival, count int) {
	t.Helper()
	if len(got) != count {
		t.Errorf("%d arrived for the other target, want %d", len(got), count)
	}
	for _, m := range got {
		if !m.At.Equal(m.Due) {
			t.Fatalf("%s for the other target came at %s, due %s", m.Body, m.At, m.Due)
		}
	}
}

// TestPausedWaitsAndGoesOutInOrder: at 1,000 messages a second for each of two targets, one of them is paused. Its due
// messages wait, also while the broker and the server are restarted. When the target is resumed, they come in the order
// of their due times. Messages that become due meanwhile come after them, and later ones on time. The other target gets
// all messages when they are due. The waiting messages take little memory.
func TestPausedWaitsAndGoesOutInOrder(t *testing.T) {
	natstest.Long(t)
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
				body := fmt.Appendf(nil, "%06d", count)
				if err := c.NC.Publish(delay+".orders.x", body); err != nil {
					t.Fatal(err)
				}
				if count++; both {
					if err := c.NC.Publish(delay+".mail.x", body); err != nil {
						t.Fatal(err)
					}
					others++
				}
				time.Sleep(time.Millisecond)
			}
		}
		send(3000, "delay.1s", true)
		for _, l := range a.Broker.Status().Lanes {
			if l.Held > 2100 {
				t.Errorf("%s holds %d messages: what waits should take no memory", l.Stream, l.Held)
			}
		}
		time.Sleep(2 * time.Second)
		checkPunctual(t, c.Arrivals("MAIL"), others)
		send(500, "delay.1s", false)
		a.Crash()
		natstest.Flush(t, c.NC)
		c.NC.Close() // nobody reconnects: see natstest.DropTimers
		o.Conn.Close()
		s.Restart(time.Second)
		a = harness.StartBroker(t, s, broker.Config{})
		c, o = harness.NewClient(t, s), harness.Operator(t, s)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := c.Arrivals("ORDERS"); len(got) > 0 {
			t.Fatalf("%d arrived while paused", len(got))
		}
		st := a.Broker.Status()
		if !st.Ready || len(st.Paused) != 1 || st.Paused[0].Pattern != "orders.>" || st.Waiting != uint64(count) {
			t.Errorf("ready %v, paused %+v, %d wait; want ready, orders.> and %d", st.Ready, st.Paused, st.Waiting, count)
		}
		harness.MustResume(t, o, "orders.>")
		send(3000, "delayin.500ms", false) // these become due while the others go out
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckInOrder(t, got, count)
		checkPunctual(t, got[count-500:], 500)
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestNothingToPausedFromReturn: when pause returns, all messages that were sent to a slow service have been answered,
// and the messages that waited in memory have been taken back.
func TestNothingToPausedFromReturn(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{HoldMessages: 1024})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.SlowService("svc.x", 300)
		in := c.Subscribe("svc.x")
		c.Many("delay.1s.svc.x", 3000, message.HeaderDeliver, "request")
		time.Sleep(1500 * time.Millisecond) // it takes 600 more within the time that pause waits for answers
		harness.MustPause(t, o, "svc.>")
		synctest.Wait()
		before := len(in.All())
		time.Sleep(time.Minute)
		if after := len(in.All()); after != before || before == 0 || before == 3000 {
			t.Errorf("%d had been sent when pause returned, %d a minute later", before, after)
		}
		c.CheckNoDead()
	})
}

// TestPausedByAllInstances: two instances share the lanes, and the due messages of both wait. An instance that crashes
// and starts again reads the list of pauses before its first message.
func TestPausedByAllInstances(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 10s"), MaxOwners: 3}
		a, _ := harness.StartBroker(t, s, cfg), harness.StartBroker(t, s, cfg)
		time.Sleep(12 * time.Second)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		change, err := o.Pause(context.Background(), "orders.>")
		if err != nil || len(change.Confirmed) != 2 || len(change.Unconfirmed) != 0 {
			t.Fatalf("%+v, %v, want two instances told", change, err)
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
		if got := c.Arrivals("ORDERS"); len(got) > 0 {
			t.Fatalf("%d arrived while paused", len(got))
		}
		harness.MustResume(t, o, "orders.>")
		send(300)
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")
		if len(got) != count {
			t.Fatalf("%d arrived, want %d", len(got), count)
		}
		var latest time.Time
		for i, m := range got {
			if latest.Sub(m.Due) > 50*time.Millisecond {
				t.Fatalf("number %d was due %s, one before it %s", i, m.Due, latest)
			}
			if m.Due.After(latest) {
				latest = m.Due
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestPausedCountsNoAttempts: a refused message keeps its attempts while it waits, even if it was in a retry lane when
// its target was paused.
func TestPausedCountsNoAttempts(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 3})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		ack := c.Publish("delay.1s.orders.x", "refused", message.HeaderDeliver, "stream")
		time.Sleep(1500 * time.Millisecond) // nobody listens, and it waits for its second attempt
		harness.MustPause(t, o, "orders.>")
		time.Sleep(time.Hour)
		w, err := o.Where(context.Background(), harness.MustWanted(t, fmt.Sprintf("%s-%d", ack.Stream, ack.Sequence)), 100,
			func(uint64, uint64) {})
		if err != nil || w.Stream != "DELAY_PAUSED" || w.Attempts != 1 || !strings.Contains(w.Answer, "paused since") {
			t.Errorf("after an hour it is %+v, %v, want one attempt, in DELAY_PAUSED", w, err)
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

// TestPausedExpires: Delay-Expires is checked when the target is resumed. An expired message becomes a dead letter.
func TestPausedExpires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		harness.MustPause(t, o, "orders.>")
		c.Publish("delay.1s.orders.x", "short", message.HeaderExpires, "10m")
		c.Publish("delay.1s.orders.x", "long", message.HeaderExpires, "2h")
		time.Sleep(time.Hour)
		c.CheckNoDead()
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		if got := harness.Bodies(c.Arrivals("ORDERS")); got != "long" {
			t.Errorf("%q arrived, want long", got)
		}
		if got := harness.Bodies(c.Dead()["expired"]); got != "short" {
			t.Errorf("%q are dead letters for having expired, want short", got)
		}
	})
}
