package test

import (
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

func timersOn(t testing.TB) broker.Config {
	return broker.Config{Ladder: ladder(t, "1s 5s 10s 1m 10m 1h"), Timers: true}
}

func TestTimerFires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.publish("delaytimer.k1.orders.x", "near", "Delay-For", "2s")
		checkExactly(t, in, start.Add(2*time.Second), 0)
		start = time.Now()
		c.publish("delaytimer.k1.orders.x", "far", "Delay-For", "2h")
		checkExactly(t, in, start.Add(2*time.Hour), 1)
		time.Sleep(2*time.Minute)
		synctest.Wait()
		c.checkEmptyBut("DELAY_TIMERS")
		c.checkNoDead()
		t.Log(pending(c, "DELAY_TIMERS"))
		for _, a := range c.arrivals("DELAY_TIMERS") { t.Log(a) }
		for _, a := range in.all() { t.Log(a) }
	})
}
