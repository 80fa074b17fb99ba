package owners

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// soon is shorter than the 5 s without a heartbeat after which an instance counts as dead. A second start on a busy
// machine may take as much longer than the first, which has streams to make.
const soon = 4 * time.Second

// TestEmbeddedShares: a second broker uses the server that the first one embeds. They share the lanes, and each message
// comes once.
func TestEmbeddedShares(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	address := natstest.FreeAddress(t)
	natstest.StartBroker(t, "DELAY_EMBEDDED_DIR="+natstest.Dir(t), "DELAY_EMBEDDED_LISTEN="+address, "NATS_URL=")
	nc, err := nats.Connect("nats://" + address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c := harness.Connected(t, nc)
	in := c.Subscribe("orders.>")
	other := natstest.StartBroker(t, "NATS_URL=nats://"+address)
	for i := range 80 {
		c.Publish("delay.1s.orders.x", fmt.Sprint(i))
		time.Sleep(100 * time.Millisecond)
	}
	in.Await(80)
	time.Sleep(time.Second) // for copies
	if got := len(in.All()); got != 80 {
		t.Errorf("%d deliveries of 80 messages", got)
	}
	other.Terminate()
}

// TestKilledComesBackAtOnce: a killed broker starts again at the same address, or on the same directory. It is
// recognised there without any setting, and owns its lanes sooner than missing heartbeats would show that the old
// process is dead.
func TestKilledComesBackAtOnce(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	s := natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true})
	for name, env := range map[string][]string{
		"address": {"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create",
			"DELAY_HTTP_ADDR=" + natstest.FreeAddress(t)},
		"directory": {
			"NATS_URL=", "DELAY_EMBEDDED_DIR=" + natstest.Dir(t), "DELAY_EMBEDDED_LISTEN=" + natstest.FreeAddress(t),
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			natstest.StartBroker(t, env...).Crash()
			first := time.Since(start)
			start = time.Now()
			natstest.StartBroker(t, env...).Crash()
			took := time.Since(start)
			t.Logf("ready after %s, and again after %s", first, took)
			if took > first+soon {
				t.Errorf("ready again after %s, want less than the %s of a first start and %s", took, first, soon)
			}
		})
	}
}
