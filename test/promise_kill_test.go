package test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// mixed are delays that together use the intake, levels, hops and the wheel.
var mixed = []string{"delayin.50ms.orders.a", "delay.1s.orders.b", "delayin.1500ms.orders.c", "delay.3s.orders.d",
	"delayin.4s.orders.e", "delayin.700ms.orders.f"}

// rate is how many messages are published a second: some hundred are on their way at each kill.
const rate = 500

// TestNothingLostOnKill kills the broker several times under load. No message is lost or early, and a stream with a
// duplicate window has one copy of each.
func TestNothingLostOnKill(t *testing.T) {
	t.Parallel()
	s := natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir()})
	c := newClient(t, s)
	c.target("ORDERS", "orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create", "DELAY_INSTANCE=one"}
	const kills = 4
	p := natstest.StartBroker(t, env...)
	l := startLoad(t, s.Connect(), rate, mixed...)
	for i := range kills {
		time.Sleep(time.Second + time.Duration(i)*130*time.Millisecond)
		p.Crash()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	accepted := l.end()
	if least := kills * rate / 2; len(accepted) < least {
		t.Errorf("only %d were accepted, want at least %d for the run to mean something", len(accepted), least)
	}
	c.awaitCount("ORDERS", len(accepted), natstest.Patience)
	l.checkHistory(c.arrivals("ORDERS"))
	c.checkNoDead()
	p.Terminate()
	c.checkEmpty()
}

// TestNothingLostOnKillEmbedded kills the broker together with its embedded server.
func TestNothingLostOnKillEmbedded(t *testing.T) {
	t.Parallel()
	natstest.DropTimers() // its client reconnects
	address := natstest.FreeAddress(t)
	env := []string{"DELAY_EMBEDDED_DIR=" + t.TempDir(), "DELAY_EMBEDDED_LISTEN=" + address, "NATS_URL="}
	const kills = 3
	p := natstest.StartBroker(t, env...)
	nc, err := nats.Connect("nats://"+address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c := connected(t, nc)
	c.target("ORDERS", "orders.>")
	l := startLoad(t, nc, rate, mixed...)
	for range kills {
		time.Sleep(1500 * time.Millisecond)
		p.Crash()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	accepted := l.end()
	if least := kills * rate / 2; len(accepted) < least {
		t.Errorf("only %d were accepted, want at least %d for the run to mean something", len(accepted), least)
	}
	c.awaitCount("ORDERS", len(accepted), natstest.Patience)
	time.Sleep(5 * time.Second) // for messages that were stored but not acknowledged
	l.checkHistory(c.arrivals("ORDERS"))
	p.Terminate()
}

// TestCleanStopUnderLoad stops and starts the broker under load. A core subscriber, which cannot recognise copies,
// receives each message once.
func TestCleanStopUnderLoad(t *testing.T) {
	t.Parallel()
	s := natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir()})
	c := newClient(t, s)
	in := c.subscribe("orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create"}
	const stops = 3
	p := natstest.StartBroker(t, env...)
	l := startLoad(t, s.Connect(), rate, mixed...)
	for i := range stops {
		time.Sleep(1500*time.Millisecond + time.Duration(i)*170*time.Millisecond)
		p.Terminate()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(time.Second)
	accepted := l.end()
	in.await(len(accepted))
	time.Sleep(time.Second) // for copies
	l.checkHistory(in.all())
	p.Terminate()
	c.checkEmpty()
}
