package owners

import (
	"testing"
	"time"

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
	c := harness.Reconnecting(t, address)
	other := natstest.StartBroker(t, "NATS_URL=nats://"+address)
	checkEachOnce(c, 80, 100*time.Millisecond)
	other.Terminate()
}

// TestKilledComesBackAtOnce: a killed broker starts again at the same address, or on the same directory. It is
// recognised there without any setting, and owns its lanes sooner than missing heartbeats would show that the old
// process is dead.
func TestKilledComesBackAtOnce(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	s := natstest.RunListening(t)
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
