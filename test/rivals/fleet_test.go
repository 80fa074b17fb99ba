package rivals_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A fleet is several brokers with one prefix, on the same servers: one is active, and the others stand by.
type fleet struct {
	b       *testing.B
	servers processes
	brokers processes
	nc      *nats.Conn
}

// startFleet starts the servers of a fleet without brokers.
func startFleet(b *testing.B, servers int) *fleet {
	b.Helper()
	f := &fleet{b: b, servers: startServers(b, servers)}
	f.nc = f.servers[0].connect()
	return f
}

// grow starts brokers until n brokers run. Each of them is ready: it is active, or stands by.
func (f *fleet) grow(b *testing.B, n int, env ...string) {
	b.Helper()
	for len(f.brokers) < n {
		f.brokers = append(f.brokers, startBroker(f.b,
			append(env, "NATS_URL="+f.servers.urls(), "DELAY_PROVISION=create")...))
	}
}

// delayMessage returns a message for the target with a plain duration as its delay.
func delayMessage(delay time.Duration) *nats.Msg {
	return &nats.Msg{Subject: prefix + "." + delay.String() + "." + names.Target(0)}
}

// stop stops all brokers with SIGTERM.
func (f *fleet) stop() {
	for _, p := range f.brokers {
		p.broker.Terminate()
	}
	f.brokers = nil
}

func (f *fleet) end() {
	f.stop()
	f.nc.Close()
	for _, p := range f.servers {
		p.kill()
	}
}
