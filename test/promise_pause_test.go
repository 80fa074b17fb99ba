package test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
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

// TestPausedWaitsAndGoesOutInOrder: what becomes due for a paused target waits, also over a crash, and goes out in the
// order of its due times when the target is resumed. Meanwhile other targets get everything when it is due.
func TestPausedWaitsAndGoesOutInOrder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := startBroker(t, s, broker.Config{})
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		c.target("MAIL", "mail.>")
		mustPause(t, o, "orders.>")
		const count = 300
		for i := range count {
			c.publish("delay.1s.orders.x", fmt.Sprintf("%04d", i))
			c.publish("delay.1s.mail.x", fmt.Sprintf("%04d", i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		a.crash()
		a = startBroker(t, s, broker.Config{})
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := c.arrivals("ORDERS"); len(got) > 0 {
			t.Fatalf("%d arrived while paused", len(got))
		}
		for _, m := range c.arrivals("MAIL") {
			if !m.At.Equal(m.Due) {
				t.Fatalf("%s for the other target came at %s, due %s", m.Body, m.At, m.Due)
			}
		}
		mustResume(t, o, "orders.>")
		for i := range 100 { // these become due while the others go out
			c.publish("delayin.500ms.orders.x", fmt.Sprintf("%04d", count+i))
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		got := c.arrivals("ORDERS")
		if len(got) != count+100 {
			t.Fatalf("%d arrived, want %d", len(got), count+100)
		}
		for i, m := range got {
			if want := fmt.Sprintf("%04d", i); m.Body != want {
				t.Fatalf("number %d is %s", i, m.Body)
			}
		}
		if last := got[len(got)-1]; !last.At.Equal(last.Due) {
			t.Errorf("the last came at %s, due %s: the pause should be over", last.At, last.Due)
		}
		if n := len(c.arrivals("MAIL")); n != count {
			t.Errorf("%d for the other target, want %d", n, count)
		}
		c.checkNoDead()
		c.checkEmpty()
		_ = a
	})
}
