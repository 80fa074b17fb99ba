package promises

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// restartUnderLoad ends a broker several times under load, at different moments, and starts it again. It returns the
// running broker and the running load.
func restartUnderLoad(
	t *testing.T, p *natstest.Process, nc *nats.Conn, times int, end func(*natstest.Process), env []string,
) (*natstest.Process, *harness.Load) {
	t.Helper()
	l := harness.StartLoad(t, nc, harness.LoadRate, harness.MixedDelays...)
	for i := range times {
		time.Sleep(1200*time.Millisecond + time.Duration(i)*150*time.Millisecond)
		end(p)
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	return p, l
}

// TestNothingLostOnKill kills the broker several times under load. No message is lost or early, and a stream with a
// duplicate window has each message once.
func TestNothingLostOnKill(t *testing.T) {
	t.Parallel()
	s := natstest.RunListening(t)
	c := harness.NewClient(t, s)
	c.Target("ORDERS", "orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create", "DELAY_INSTANCE=one"}
	const kills = 4
	p, l := restartUnderLoad(t, natstest.StartBroker(t, env...), s.Connect(), kills, (*natstest.Process).Crash, env)
	c.AwaitCount("ORDERS", l.End(kills*harness.LoadRate/2), natstest.Timeout)
	l.CheckHistory(c.Arrivals("ORDERS"))
	p.Terminate()
	c.CheckEmpty()
}

// TestNothingLostOnKillEmbedded kills the broker together with its embedded server.
func TestNothingLostOnKillEmbedded(t *testing.T) {
	t.Parallel()
	address := natstest.FreeAddress(t)
	env := []string{"DELAY_EMBEDDED_DIR=" + natstest.Dir(t), "DELAY_EMBEDDED_LISTEN=" + address, "NATS_URL="}
	p := natstest.StartBroker(t, env...)
	c := harness.NewReconnectingClient(t, address)
	c.Target("ORDERS", "orders.>")
	const kills = 3
	p, l := restartUnderLoad(t, p, c.NC, kills, (*natstest.Process).Crash, env)
	c.AwaitCount("ORDERS", l.End(kills*harness.LoadRate/2), natstest.Timeout)
	time.Sleep(5 * time.Second) // for messages that were stored without an acknowledgement, and for duplicates
	l.CheckHistory(c.Arrivals("ORDERS"))
	p.Terminate()
}

// TestCleanStopUnderLoad stops and starts the broker under load. A core subscriber, which cannot recognise duplicates,
// receives each message once.
func TestCleanStopUnderLoad(t *testing.T) {
	t.Parallel()
	s := natstest.RunListening(t)
	c := harness.NewClient(t, s)
	in := c.Subscribe("orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create"}
	p, l := restartUnderLoad(t, natstest.StartBroker(t, env...), s.Connect(), 3, (*natstest.Process).Terminate, env)
	in.Await(l.End(0))
	time.Sleep(time.Second) // for duplicates
	l.CheckHistory(in.Arrivals())
	p.Terminate()
	c.CheckEmpty()
}
