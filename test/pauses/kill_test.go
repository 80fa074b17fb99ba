package pauses

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestNothingLostOnKillWhilePaused: one of two targets is paused, with 1,000 messages a second for both together. Two
// brokers are killed and started again in turn, at the end both together. No message arrives at the paused target, and
// no message is lost. After the resumption, under load, the waiting messages of each subject arrive in the order of
// their due times.
func TestNothingLostOnKillWhilePaused(t *testing.T) {
	t.Parallel()
	s := natstest.RunListening(t)
	c := harness.NewClient(t, s)
	c.Target("ORDERS", "orders.>")
	c.Target("MAIL", "mail.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create"}
	one, two := append(slices.Clone(env), "DELAY_INSTANCE=one"), append(slices.Clone(env), "DELAY_INSTANCE=two")
	a, b := natstest.StartBroker(t, one...), natstest.StartBroker(t, two...)
	verb := func(words ...string) {
		t.Helper()
		if out, errs, code := natstest.RunCommand(t, env, words...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", words, code, out, errs)
		}
	}
	verb("pause", "orders.>")
	// On a busy machine, DELAY_PAUSED may not answer for a second. The messages that are due then wait in a retry lane,
	// and lose their place.
	var retried sync.Map // by the id of the message
	_, err := s.Connect().Subscribe("delaysys.retry.>", func(m *nats.Msg) {
		retried.Store(harness.StateOf(t, m.Header).ID, true)
	})
	natstest.NoError(t, err)
	l := harness.StartLoad(t, s.Connect(), 2*harness.LoadRate, "delay.1s.orders.a", "delay.1s.mail.a",
		"delayin.700ms.orders.b",
		"delayin.700ms.mail.b")
	time.Sleep(700 * time.Millisecond)
	a.Crash()
	a = natstest.StartBroker(t, one...)
	time.Sleep(300 * time.Millisecond)
	b.Crash()
	b = natstest.StartBroker(t, two...)
	a.Crash()
	b.Crash()
	a, b = natstest.StartBroker(t, one...), natstest.StartBroker(t, two...)
	time.Sleep(time.Second)
	for _, name := range []string{"DELAY_INTAKE", "DELAY_1s"} {
		begun := time.Now()
		natstest.Await(t, "the due messages of "+name+" have moved into the lane of the pause", func() bool {
			state := c.Stream(name).CachedInfo().State
			return state.Msgs == 0 || state.FirstTime.After(begun)
		})
	}
	if n := harness.Pending(c, "ORDERS"); n > 0 {
		t.Fatalf("%d messages for the paused target arrived", n)
	}
	resumed := time.Now()
	verb("resume", "orders.>")
	time.Sleep(time.Second)
	accepted := l.End(0)
	natstest.Await(t, "all accepted messages have arrived", func() bool {
		return int(harness.Pending(c, "ORDERS")+harness.Pending(c, "MAIL")) >= accepted
	})
	orders := c.Arrivals("ORDERS")
	l.CheckHistory(append(c.Arrivals("MAIL"), orders...))
	latest := make(map[string]time.Time)
	waited := 0
	for _, m := range orders {
		if _, wasRetried := retried.Load(m.ID); wasRetried || m.Due.After(resumed) {
			continue
		}
		if waited++; m.Due.Before(latest[m.Subject]) {
			t.Fatalf("waiting message %d, for %s, was due at %s, and arrived after one that was due at %s", waited,
				m.Subject, m.Due, latest[m.Subject])
		}
		latest[m.Subject] = m.Due
	}
	if waited < accepted/10 {
		t.Errorf("only %d of %d messages waited, too few to prove the order", waited, accepted)
	}
	a.Terminate()
	b.Terminate()
	c.CheckEmpty()
}
