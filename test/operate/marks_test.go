package operate

import (
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestBrokenMarks: the broker's metadata of a stream is invalid.
func TestBrokenMarks(t *testing.T) {
	t.Parallel()
	for name, marks := range map[string]map[string]string{
		"level": {"delaybroker.kind": "level", "delaybroker.level": "soon", "delaybroker.prefix": "delay",
			"delaybroker.stream": "DELAY_13s"},
		"kind": {"delaybroker.kind": "rounds", "delaybroker.level": "13s", "delaybroker.prefix": "delay",
			"delaybroker.stream": "DELAY_13s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkLeftAlone(t, "the marks of a stream cannot be read", marks)
		})
	}
}

// checkLeftAlone runs a broker beside a stream with this metadata. The broker logs a warning, does not touch the
// stream, and serves the others.
func checkLeftAlone(t *testing.T, warning string, marks map[string]string) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		c.Create(jetstream.StreamConfig{
			Name: "DELAY_13s", Subjects: []string{"delaysys.hop.13s.>"}, Metadata: marks,
		})
		c.Publish("delaysys.hop.13s.orders.theirs", "theirs")
		log := harness.NewCountingLog()
		harness.StartBroker(t, s, broker.Config{Log: slog.New(log)})
		start := time.Now()
		c.Publish("delay.1m.orders.ours", "ours")
		c.CheckArrivals("ORDERS", start.Add(time.Minute), "ours")
		if got := log.CountPrefix(warning); got != 1 {
			t.Errorf("the log has the warning %q %d times, want once", warning, got)
		}
		harness.CheckBodies(t, c.Arrivals("DELAY_13s"), "theirs")
		c.CheckNoDead()
	})
}

// TestCanary starts a server under fake time, in a process of its own: if an upgrade of NATS breaks fake time, the
// clock stands still and the process hangs.
func TestCanary(t *testing.T) {
	if os.Getenv("DELAYBROKER_CANARY") != "" {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			started := time.Now()
			time.Sleep(time.Hour)
			if got := time.Since(started); got != time.Hour {
				t.Errorf("slept %s, want 1h", got)
			}
		})
		return
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCanary$", "-test.timeout=60s")
	child.Env = append(os.Environ(), "DELAYBROKER_CANARY=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("no server runs under fake time; see the rules in natstest, above all the first: %v\n%s", err, out)
	}
}
