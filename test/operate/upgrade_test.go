package operate

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// Brokers of two versions share streams during an upgrade and after a rollback. The older broker leaves messages and
// streams that it cannot read, and logs that. Everything else works.

// TestUpgradeAndBack replaces the broker by a newer one under load, then by the older one, then by the newer one again.
// DELAYBROKER_OLDER names the older program. Without it, the current program takes both parts:
//
//	git worktree add /tmp/older v1.0.0 && (cd /tmp/older && go build -o delaybroker ./cmd/delaybroker)
//	DELAYBROKER_OLDER=/tmp/older/delaybroker go test ./test/operate -run TestUpgradeAndBack
func TestUpgradeAndBack(t *testing.T) {
	t.Parallel()
	s := natstest.RunListening(t)
	c := harness.NewClient(t, s)
	in := c.Subscribe("orders.>")
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create"}
	l := (*harness.Load)(nil)
	for i, start := range []func(testing.TB, ...string) *natstest.Process{
		natstest.StartOlderBroker, natstest.StartBroker, natstest.StartOlderBroker, natstest.StartBroker,
	} {
		p := start(t, env...)
		if l == nil {
			l = harness.StartLoad(t, s.Connect(), harness.LoadRate, harness.MixedDelays...)
		}
		time.Sleep(1500*time.Millisecond + time.Duration(i)*170*time.Millisecond)
		if i == 3 {
			defer p.Terminate()
			break
		}
		p.Terminate()
	}
	in.Await(l.End(2 * harness.LoadRate))
	time.Sleep(time.Second) // for duplicates
	l.CheckHistory(in.Arrivals())
	c.CheckNoDead()
}

// TestNewerStream: one level has a newer format than this broker knows.
func TestNewerStream(t *testing.T) {
	t.Parallel()
	checkLeftAlone(t, "a newer broker made this stream", map[string]string{
		"delaybroker.kind": "level", "delaybroker.level": "13s", "delaybroker.prefix": "delay",
		"delaybroker.format": "2",
	})
}

// TestBrokenMarks: the broker's metadata of a stream is invalid.
func TestBrokenMarks(t *testing.T) {
	t.Parallel()
	for name, marks := range map[string]map[string]string{
		"format": {"delaybroker.kind": "level", "delaybroker.level": "13s", "delaybroker.prefix": "delay",
			"delaybroker.format": "one"},
		"none": {"delaybroker.kind": "level", "delaybroker.level": "13s", "delaybroker.prefix": "delay"},
		"level": {"delaybroker.kind": "level", "delaybroker.level": "soon", "delaybroker.prefix": "delay",
			"delaybroker.format": "1"},
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

// TestNewerMessage: a lane has messages of a newer format. They stay in the lane, the messages behind them are on time,
// and the broker logs a warning about once a minute.
func TestNewerMessage(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		c := harness.StartBroker(t, s, broker.Config{Log: slog.New(log)}).NewClient()
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		for range 3 {
			c.PublishSealed(c.Keys("delay"), "delaysys.hop.5s.orders.theirs", "theirs",
				message.HeaderFormat, strconv.Itoa(message.Format+1), "Delay-New", "whatever this is")
		}
		c.Publish("delay.5s.orders.ours", "ours")
		c.CheckArrivals("ORDERS", start.Add(5*time.Second-1))
		c.CheckArrivals("ORDERS", start.Add(5*time.Second), "ours")
		time.Sleep(time.Hour)
		harness.CheckBodies(t, c.Arrivals("DELAY_5s"), "theirs×3")
		if got := log.CountPrefix("a message in a newer format waits for a newer broker"); got < 50 || got > 70 {
			t.Errorf("the waiting messages were logged %d times in an hour, want about 60", got)
		}
		c.CheckNoDead()
	})
}

// TestNewerStateHeader: an older broker that continues with a message of a newer broker drops unknown state headers, in
// the message at the target and in a dead letter. The unknown headers do not stop the delivery.
func TestNewerStateHeader(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{Attempts: 2}, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		stamp := start.UTC().Format(time.RFC3339Nano)
		again := start.Add(5 * time.Second).UTC().Format(time.RFC3339Nano)
		for n, target := range []string{"orders.x", "nobody.x"} {
			c.PublishSealed(c.Keys("delay"), "delaysys.retry.5s."+target, target,
				message.HeaderFormat, "1", message.HeaderID, fmt.Sprintf("DELAY_1s-%d-1", n+1), message.HeaderHop, "3",
				message.HeaderAccepted, stamp, message.HeaderDue, stamp, message.HeaderAttempts, "1",
				message.HeaderFirstFailure, stamp, message.HeaderLastFailure, stamp, message.HeaderRetryAt, again,
				"Delay-New", "whatever this is", "X-Order", "42")
		}
		c.CheckArrivals("ORDERS", start.Add(5*time.Second), "orders.x")
		time.Sleep(time.Minute)
		arrived, letters := c.Arrivals("ORDERS"), c.DeadLetters()[string(message.Undelivered)]
		if len(arrived) != 1 || len(letters) != 1 {
			t.Fatalf("%d arrived, and %d became dead letters, want one each", len(arrived), len(letters))
		}
		for what, a := range map[string]harness.Arrival{"target": arrived[0], "dead letter": letters[0]} {
			if got := a.Header.Get("Delay-New"); got != "" || a.Header.Get("X-Order") != "42" {
				t.Errorf("the %s has the header of the newer broker, %q, or lacks the client's", what, got)
			}
		}
		c.CheckEmptyBut("DELAY_DEAD")
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
