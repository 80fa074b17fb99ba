package test

import (
	"context"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// TestRestoredUnderABlockedReader restores a level in place while its reader waits for its owner, who holds enough, and
// hears nothing of it. New messages take the sequences of old ones; from a backup of an older server, the stream says
// that it is as old as before. What the owner commits then must not take the new ones.
func TestRestoredUnderABlockedReader(t *testing.T) {
	t.Parallel()
	for name, backUp := range map[string]func(*natstest.Server, *client) natstest.Backup{
		"backup":             func(_ *natstest.Server, c *client) natstest.Backup { return natstest.BackUp(c.t, c.nc, "DELAY_1h") },
		"backup before 2.15": func(s *natstest.Server, c *client) natstest.Backup { return s.BackUpFiles(c.nc, "DELAY_1h") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				startBroker(t, s, broker.Config{})
				c := newClient(t, s)
				c.target("ORDERS", "orders.>")
				start := time.Now()
				c.many("delay.1h.orders.before", 50)
				time.Sleep(time.Second)
				backup := backUp(s, c)
				c.many("delay.1h.orders.forgotten", 50)
				time.Sleep(30 * time.Minute)
				c.many("delay.1h.orders.forgotten", 900) // more than are read half an hour ahead
				time.Sleep(time.Minute)
				if err := c.js.DeleteStream(context.Background(), "DELAY_1h"); err != nil {
					t.Fatal(err)
				}
				natstest.Restore(t, c.nc, backup)
				const later = 1000
				c.many("delay.1h.orders.new", later)
				time.Sleep(time.Until(start.Add(3 * time.Hour)))
				count := make(map[string]int)
				for _, a := range c.arrivals("ORDERS") {
					count[strings.TrimPrefix(a.Subject, "orders.")]++
				}
				if count["new"] != later || count["before"] != 50 {
					t.Errorf("%d of %d new messages arrived, and %d of 50 older ones; want all, once", count["new"], later, count["before"])
				}
				c.checkNoDead()
				c.checkEmpty()
			})
		})
	}
}
