package promises

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestNothingLostOnKill kills the broker several times under load. No message is lost or early, and a stream with a
// duplicate window has one copy of each.
func TestNothingLostOnKill(t *testing.T) {
	t.Parallel()
	s := natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true})
	c := harness.NewClient(t, s)
	c.Target("ORDERS", "orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create", "DELAY_INSTANCE=one"}
	const kills = 4
	p := natstest.StartBroker(t, env...)
	l := harness.StartLoad(t, s.Connect(), harness.LoadRate, harness.MixedDelays...)
	for i := range kills {
		time.Sleep(time.Second + time.Duration(i)*130*time.Millisecond)
		p.Crash()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	c.AwaitCount("ORDERS", l.End(kills*harness.LoadRate/2), natstest.Timeout)
	l.CheckHistory(c.Arrivals("ORDERS"))
	c.CheckNoDead()
	p.Terminate()
	c.CheckEmpty()
}

// TestNothingLostOnKillEmbedded kills the broker together with its embedded server.
func TestNothingLostOnKillEmbedded(t *testing.T) {
	t.Parallel()
	address := natstest.FreeAddress(t)
	env := []string{"DELAY_EMBEDDED_DIR=" + natstest.Dir(t), "DELAY_EMBEDDED_LISTEN=" + address, "NATS_URL="}
	const kills = 3
	p := natstest.StartBroker(t, env...)
	c := harness.Reconnecting(t, address)
	c.Target("ORDERS", "orders.>")
	l := harness.StartLoad(t, c.NC, harness.LoadRate, harness.MixedDelays...)
	for range kills {
		time.Sleep(1500 * time.Millisecond)
		p.Crash()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	c.AwaitCount("ORDERS", l.End(kills*harness.LoadRate/2), natstest.Timeout)
	time.Sleep(5 * time.Second) // for messages that were stored but not acknowledged
	l.CheckHistory(c.Arrivals("ORDERS"))
	p.Terminate()
}

// TestCleanStopUnderLoad stops and starts the broker under load. A core subscriber, which cannot recognise copies,
// receives each message once.
func TestCleanStopUnderLoad(t *testing.T) {
	t.Parallel()
	s := natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true})
	c := harness.NewClient(t, s)
	in := c.Subscribe("orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create"}
	const stops = 3
	p := natstest.StartBroker(t, env...)
	l := harness.StartLoad(t, s.Connect(), harness.LoadRate, harness.MixedDelays...)
	for i := range stops {
		time.Sleep(1500*time.Millisecond + time.Duration(i)*170*time.Millisecond)
		p.Terminate()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	in.Await(l.End(0))
	time.Sleep(time.Second) // for copies
	l.CheckHistory(in.All())
	p.Terminate()
	c.CheckEmpty()
}
