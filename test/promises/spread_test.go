package promises

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestSpread: the messages of two tenants for one moment are due over the following Delay-Spread, each at the time that
// its id decides, though the broker is killed before the moment and during the spread. One tenant's flood changes no
// due time of the other.
func TestSpread(t *testing.T) {
	t.Parallel()
	flood := 3000
	if testing.Short() {
		flood = 300
	}
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const limit = time.Minute
		cfg := broker.Config{Instance: "one", Timers: true, Log: harness.NoLog}
		c := harness.NewClient(t, s)
		b := harness.StartBroker(t, s, cfg)
		c.Target("MAIL", "mail.>", "shop.>")
		moment := time.Now().Add(time.Minute).Truncate(time.Second)
		for i := range flood {
			c.Publish("delayat."+message.TimeToken(moment)+".mail.remind", fmt.Sprint(i), message.HeaderSpread, "1m")
			if i%10 == 0 {
				c.Publish("delayat."+message.TimeToken(moment)+".shop.remind", fmt.Sprint(i), message.HeaderSpread, "1m",
					"Nats-Msg-Id", fmt.Sprintf("shop/%d", i))
			}
		}
		c.Publish("delaytimer.t.shop.timer", "timer", message.HeaderFor, "1m", message.HeaderSpread, "1m")
		for _, at := range []time.Duration{-10 * time.Second, 30 * time.Second} {
			time.Sleep(time.Until(moment.Add(at)))
			b.Crash()
			b = harness.StartBroker(t, s, cfg)
		}
		time.Sleep(2 * limit)
		arrivals, seen, quarters := c.Arrivals("MAIL"), make(map[string]bool), make([]int, 4)
		for _, a := range arrivals {
			part := a.Due.Sub(moment)
			if id := a.Header.Get(message.HeaderMsgID); id != "" && part != message.PartOf(limit, id) {
				t.Errorf("%s is due %s after the moment, want %s", id, part, message.PartOf(limit, id))
			}
			if a.Subject != "shop.timer" && (part < 0 || part >= limit) || a.At.Before(a.Due) {
				t.Fatalf("%s is due %s after the moment, and came %s after that", a.Subject, part, a.At.Sub(a.Due))
			}
			seen[a.Subject+a.Body] = true
			quarters[min(max(part, 0)/(limit/4), 3)]++
		}
		if want := flood + flood/10 + 1; len(seen) != want {
			t.Errorf("%d of %d messages arrived", len(seen), want)
		}
		for i, n := range quarters {
			if n < flood/5 {
				t.Errorf("%d messages are due in quarter %d of the spread, want some %d", n, i+1, flood/4)
			}
		}
		c.CheckNoDead()
		c.CheckNoTimers()
	})
}
