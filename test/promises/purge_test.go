package promises

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestPurgedByOperator: under load, an operator purges the broker's streams: completely, except for some messages, up
// to a sequence, or a target's subjects. Messages of other targets, and all messages after the purges, arrive once and
// on time.
func TestPurgedByOperator(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string][]jetstream.StreamPurgeOpt{
		"all": nil, "a target": {jetstream.WithPurgeSubject("delay.*.mail.x")},
		"all but three": {jetstream.WithPurgeKeep(3)}, "up to a sequence": {jetstream.WithPurgeSequence(20)},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			harness.StartBrokers(t, s, 2, broker.Config{Leaser: harness.Together, Log: harness.NoLog, Timers: true})
			c := harness.NewClient(t, s)
			c.Target("ORDERS", "orders.>")
			mail := c.Subscribe("mail.>")
			const count = 100
			publish := func(kind string) {
				for i := range count {
					c.Publish("delay.10s.orders.x", fmt.Sprint(kind, i))
					c.Publish("delay.10s.mail.x", fmt.Sprint(kind, i))
					c.Publish(fmt.Sprintf("delaytimer.%s%d.orders.t", kind, i), fmt.Sprint(kind, i), "Delay-For", "10s")
					time.Sleep(20 * time.Millisecond)
				}
			}
			publish("before")
			time.Sleep(5 * time.Second)
			for stream := range c.JS.StreamNames(context.Background()).Name() {
				if stream != "ORDERS" {
					natstest.NoError(t, c.Stream(stream).Purge(context.Background(), purge...))
				}
			}
			publish("after")
			time.Sleep(2 * time.Minute)
			copies := make(map[string]int)
			for _, a := range append(c.Arrivals("ORDERS"), mail.Arrivals()...) {
				copies[a.Subject+a.Body]++
				if late := a.At.Sub(a.Due); late != 0 {
					t.Fatalf("%s on %s is late by %s", a.Body, a.Subject, late)
				}
			}
			for i := range count {
				for _, target := range []string{"orders.x", "orders.t", "mail.x"} {
					before, after := copies[fmt.Sprint(target, "before", i)], copies[fmt.Sprint(target, "after", i)]
					if after != 1 || before > 1 || name == "a target" && target != "mail.x" && before != 1 {
						t.Fatalf("message %d for %s arrived %d times before and %d after the purge", i, target, before, after)
					}
				}
			}
			c.CheckNoDead()
		})
	}
}
