package test

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
	"delaybroker/test/natstest"
)

// operator looks at a broker from outside.
func operator(t testing.TB, s *natstest.Server) *inspect.Inspector {
	t.Helper()
	i, err := inspect.Open(s.Connect(), broker.Config{MaxOwners: 3})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func mustPause(t testing.TB, i *inspect.Inspector, pattern string) {
	t.Helper()
	if _, err := i.Pause(context.Background(), pattern); err != nil {
		t.Fatalf("pause %s: %v", pattern, err)
	}
}

func mustResume(t testing.TB, i *inspect.Inspector, pattern string) {
	t.Helper()
	if _, err := i.Resume(context.Background(), pattern); err != nil {
		t.Fatalf("resume %s: %v", pattern, err)
	}
}

// checkInOrder expects these many arrivals whose bodies are numbers in order.
func checkInOrder(t *testing.T, got []arrival, count int) {
	t.Helper()
	if len(got) != count {
		t.Fatalf("%d arrived, want %d", len(got), count)
	}
	for i, m := range got {
		if want := fmt.Sprintf("%06d", i); m.Body != want {
			t.Fatalf("number %d is %s", i, m.Body)
		}
	}
}

// checkPunctual expects the arrivals at their due times.
func checkPunctual(t *testing.T, got []arrival, count int) {
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

// TestPausedWaitsAndGoesOutInOrder: at 1,000 messages a second for each of two targets, one of them is paused. What
// becomes due for it waits, also while the broker and the server are restarted, and goes out in the order of the due
// times when the target is resumed; what becomes due meanwhile goes out behind it, and then on time. The other target
// gets everything when it is due, and a moment of memory holds all that waits.
func TestPausedWaitsAndGoesOutInOrder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := startBroker(t, s, broker.Config{})
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		c.target("MAIL", "mail.>")
		mustPause(t, o, "orders.>")
		count, others := 0, 0
		send := func(n int, delay string, both bool) {
			for range n {
				body := fmt.Appendf(nil, "%06d", count)
				if err := c.nc.Publish(delay+".orders.x", body); err != nil {
					t.Fatal(err)
				}
				if count++; both {
					if err := c.nc.Publish(delay+".mail.x", body); err != nil {
						t.Fatal(err)
					}
					others++
				}
				time.Sleep(time.Millisecond)
			}
		}
		send(3000, "delay.1s", true)
		for _, l := range a.broker.Status().Lanes {
			if l.Held > 2100 {
				t.Errorf("%s holds %d messages: what waits should take no memory", l.Stream, l.Held)
			}
		}
		time.Sleep(2 * time.Second)
		checkPunctual(t, c.arrivals("MAIL"), others)
		send(500, "delay.1s", false)
		a.crash()
		natstest.Flush(t, c.nc)
		c.nc.Close() // nobody reconnects: see natstest.DropTimers
		o.Conn.Close()
		s.Restart(time.Second)
		a = startBroker(t, s, broker.Config{})
		c, o = newClient(t, s), operator(t, s)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := c.arrivals("ORDERS"); len(got) > 0 {
			t.Fatalf("%d arrived while paused", len(got))
		}
		st := a.broker.Status()
		if !st.Ready || len(st.Paused) != 1 || st.Paused[0].Pattern != "orders.>" || st.Waiting != uint64(count) {
			t.Errorf("ready %v, paused %+v, %d wait; want ready, orders.> and %d", st.Ready, st.Paused, st.Waiting, count)
		}
		mustResume(t, o, "orders.>")
		send(3000, "delayin.500ms", false) // these become due while the others go out
		time.Sleep(time.Minute)
		got := c.arrivals("ORDERS")
		checkInOrder(t, got, count)
		checkPunctual(t, got[count-500:], 500)
		c.checkNoDead()
		c.checkEmpty()
	})
}

// TestNothingToPausedFromReturn: when pause returns, what was sent to a slow service has been answered, and what waited
// in memory for its turn there has been taken back.
func TestNothingToPausedFromReturn(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{HoldMessages: 1024})
		c, o := newClient(t, s), operator(t, s)
		c.slowService("svc.x", 300)
		in := c.subscribe("svc.x")
		c.many("delay.1s.svc.x", 3000, message.HeaderDeliver, "request")
		time.Sleep(1500 * time.Millisecond) // it takes 600 more within the time that pause waits for answers
		mustPause(t, o, "svc.>")
		synctest.Wait()
		before := len(in.all())
		time.Sleep(time.Minute)
		if after := len(in.all()); after != before || before == 0 || before == 3000 {
			t.Errorf("%d had been sent when pause returned, %d a minute later", before, after)
		}
		c.checkNoDead()
	})
}

// TestPausedByAllInstances: two instances share the lanes; what either of them has waits. One that is stopped by a
// crash and started again goes by the list from its first message on.
func TestPausedByAllInstances(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: ladder(t, "1s 5s 10s"), MaxOwners: 3}
		a, _ := startBroker(t, s, cfg), startBroker(t, s, cfg)
		time.Sleep(12 * time.Second)
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		change, err := o.Pause(context.Background(), "orders.>")
		if err != nil || len(change.Told) != 2 || len(change.Untold) != 0 {
			t.Fatalf("%+v, %v, want two instances told", change, err)
		}
		count := 0
		send := func(n int) {
			for range n {
				for _, delay := range []string{"delay.1s", "delay.5s", "delayin.3s"} {
					c.publish(delay+".orders.x", "")
					count++
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		send(100)
		a.crash()
		send(100)
		startBroker(t, s, cfg)
		send(100)
		time.Sleep(time.Minute)
		if got := c.arrivals("ORDERS"); len(got) > 0 {
			t.Fatalf("%d arrived while paused", len(got))
		}
		mustResume(t, o, "orders.>")
		send(300)
		time.Sleep(time.Minute)
		got := c.arrivals("ORDERS")
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
		c.checkNoDead()
		c.checkEmpty()
	})
}

// TestPausedCountsNoAttempts: a message that was refused waits with its attempts, also if it waited in a retry lane
// when its target was paused.
func TestPausedCountsNoAttempts(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Attempts: 3})
		c, o := newClient(t, s), operator(t, s)
		ack := c.publish("delay.1s.orders.x", "refused", message.HeaderDeliver, "stream")
		time.Sleep(1500 * time.Millisecond) // nobody listens, and it waits for its second attempt
		mustPause(t, o, "orders.>")
		time.Sleep(time.Hour)
		w, err := o.Where(context.Background(), mustWanted(t, fmt.Sprintf("%s-%d", ack.Stream, ack.Sequence)), 100,
			func(uint64, uint64) {})
		if err != nil || w.Stream != "DELAY_PAUSED" || w.Attempts != 1 || !strings.Contains(w.Answer, "paused since") {
			t.Errorf("after an hour it is %+v, %v, want one attempt, in DELAY_PAUSED", w, err)
		}
		c.checkNoDead()
		c.target("ORDERS", "orders.>")
		mustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		got := c.arrivals("ORDERS")
		if len(got) != 1 || got[0].Header.Get(message.HeaderAttempts) != "1" {
			t.Errorf("got %+v, want one delivery after one refusal", got)
		}
	})
}

func mustWanted(t *testing.T, id string) inspect.Wanted {
	t.Helper()
	w, err := inspect.ParseWanted(id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPausedExpires: Delay-Expires is looked at when the target is resumed. What is past it becomes a dead letter.
func TestPausedExpires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{})
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		mustPause(t, o, "orders.>")
		c.publish("delay.1s.orders.x", "short", message.HeaderExpires, "10m")
		c.publish("delay.1s.orders.x", "long", message.HeaderExpires, "2h")
		time.Sleep(time.Hour)
		c.checkNoDead()
		mustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		if got := bodies(c.arrivals("ORDERS")); got != "long" {
			t.Errorf("%q arrived, want long", got)
		}
		if got := bodies(c.dead()["expired"]); got != "short" {
			t.Errorf("%q are dead letters for having expired, want short", got)
		}
	})
}
