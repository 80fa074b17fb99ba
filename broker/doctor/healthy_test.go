package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/pause"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// healthy are situations of a normal installation.
var healthy = []situation{
	{name: "idle since the start", set: func(sc *scene) { sc.serve() }},
	{name: "idle for hours", set: func(sc *scene) {
		sc.createForeign("ORDERS", "orders.>")
		sc.serve()
		sc.publish(3, "delay.1s.orders.x")
		time.Sleep(2 * time.Hour)
	}},
	{name: "a broker that is starting", set: func(sc *scene) { sc.launch() }},
	{name: "10,000 pending in one level", set: func(sc *scene) {
		sc.serve()
		sc.publish(10_000, "delay.5m.orders.x")
	}},
	{name: "more pending than memory holds", set: func(sc *scene) {
		sc.cfg.HoldMessages = 16
		sc.serve()
		sc.publish(500, "delay.5m.orders.x")
		sc.publish(500, "delayin.2m.orders.x")
		time.Sleep(time.Minute)
	}},
	{name: "a standby instance", set: func(sc *scene) {
		sc.serve()
		sc.serve()
	}},
	{name: "just restarted", set: func(sc *scene) {
		sc.serve().stop()
		sc.launch()
	}},
	{name: "an instance died a second ago", set: func(sc *scene) {
		victim := sc.serve()
		sc.serve()
		time.Sleep(time.Minute)
		victim.crash()
		time.Sleep(time.Second)
	}},
	{name: "an upgrade in progress", rights: withoutStatus(), set: func(sc *scene) {
		sc.cfg.Ladder, sc.cfg.HoldMessages = harness.Ladder(sc.t, "1s 5m 6m 7m 8m 9m"), 16
		sc.serve(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser)) // an old broker, which answers no requests
		for _, level := range []string{"5m", "6m", "7m", "8m", "9m"} {
			sc.publish(500, "delay."+level+".orders.x") // its memory is full, so it does not read these lanes
		}
		sc.serve()
		time.Sleep(time.Minute)
	}},
	{name: "a broker that may not answer, with a full memory", rights: withoutStatus(), set: func(sc *scene) {
		sc.cfg.HoldMessages = 16
		sc.serve(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser))
		sc.publish(500, "delay.5m.orders.x")
		time.Sleep(time.Minute)
	}},
	{name: "a subscriber that is down for a deploy", set: func(sc *scene) {
		sc.serve()
		sc.publish(50, "delay.1s.shop.mail", "Delay-Deliver", "core")
		time.Sleep(20 * time.Second)
	}},
	{name: "a client flood", set: func(sc *scene) {
		sc.serve()
		sc.publish(3000, "delay.1s.orders.x")
		sc.publish(1000, "delayin.1500ms.orders.x")
	}},
	{name: "a large backlog after an outage", set: func(sc *scene) {
		sc.serve().stop()
		sc.publish(3000, "delay.1s.orders.x")
		time.Sleep(time.Hour)
		sc.serve()
		time.Sleep(3 * time.Second)
	}},
	{name: "few and old dead letters", set: func(sc *scene) {
		broker := sc.serve()
		sc.publish(3, "delayin.soon.orders.x")
		time.Sleep(time.Minute)
		broker.stop()
		time.Sleep(25 * time.Hour)
		sc.serve()
	}},
	{name: "changed levels, one of them retiring", set: func(sc *scene) {
		sc.serve().stop()
		sc.publish(20, "delay.5m.orders.x")
		sc.cfg.Ladder = harness.Ladder(sc.t, "1s 5s")
		sc.serve()
	}},
	{name: "streams that another tool has changed, verified", set: func(sc *scene) {
		sc.provision()
		sc.change("DELAY_5s", func(c *jetstream.StreamConfig) {
			c.Description, c.Metadata["owner"], c.AllowDirect = "made by terraform", "platform", true
			c.Compression = jetstream.S2Compression
		})
		sc.cfg.Provision = false
		sc.serve()
	}},
	{name: "a foreign consumer of a level", set: func(sc *scene) {
		sc.serve()
		sc.addConsumer("DELAY_5s")
	}},
	{name: "streams of other programs and of another broker", set: func(sc *scene) {
		sc.createForeign("LEDGER", "ledger.>")
		cfg := sc.cfg
		sc.cfg.Prefix = "later"
		sc.serve()
		sc.publish(3, "later.5m.orders.x")
		sc.cfg = cfg
		sc.serve()
	}},
	{name: "a restarted server", set: func(sc *scene) {
		sc.serve()
		sc.publish(20, "delay.5m.orders.x")
		sc.server.Restart(10 * time.Second)
		time.Sleep(time.Second)
	}},
	{name: "limits that are not near", options: server.Options{JetStreamMaxStore: 1 << 30}, set: func(sc *scene) {
		sc.cfg.MaxPending, sc.cfg.MaxPendingBytes = 1000, 1<<20
		sc.serve()
		sc.publish(20, "delay.5m.orders.x")
	}},
	{name: "a stream that was deleted and created again", set: func(sc *scene) {
		sc.serve()
		sc.remove("DELAY_5s")
		time.Sleep(20 * time.Second)
		sc.provision()
		time.Sleep(20 * time.Second)
	}},
	{name: "messages that are due after they leave their level", set: func(sc *scene) {
		sc.serve()
		sc.publish(20, "delay.5m.orders.x", "Delay-Until", time.Now().Add(time.Hour).Format(time.RFC3339))
	}},
	{name: "a paused target", set: func(sc *scene) {
		sc.serve()
		operator := harness.InspectAs(sc.t, sc.server, sc.cfg, "")
		if _, err := operator.Pause(sc.t.Context(), "orders.>", pause.Hours{}); err != nil {
			sc.t.Fatal(err)
		}
		sc.publish(2000, "delay.1s.orders.x")
		time.Sleep(time.Hour)
	}},
	{name: "a configured secret", set: func(sc *scene) {
		sc.cfg.Secrets = []string{strings.Repeat("s", 32)}
		sc.serve()
		sc.publish(20, "delayin.2m.orders.x")
	}},
}

// TestDoctorIsQuiet: doctor gives no warning in the situations of a normal installation.
func TestDoctorIsQuiet(t *testing.T) {
	natstest.SkipShort(t)
	for _, s := range healthy {
		s.play(t, func(t *testing.T, found []Finding) {
			if got := problems(found); got != "" {
				t.Errorf("got\n%swant no warning", got)
			}
		})
	}
}

// withoutStatus returns the permissions of a broker that receives no requests for its status.
func withoutStatus() server.Permissions {
	denied := &server.SubjectPermission{Deny: []string{"delayctl.status", "delayctl.status.>"}}
	return server.Permissions{Publish: denied, Subscribe: denied}
}
