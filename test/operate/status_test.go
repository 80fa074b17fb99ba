package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// ask requests the status of all instances, and collects the JSON messages on the reply subject for a second.
func ask(t *testing.T, nc *nats.Conn, reply string) (all []broker.InstanceStatus) {
	t.Helper()
	sub, err := nc.SubscribeSync(reply)
	natstest.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	natstest.NoError(t, nc.PublishRequest("delayctl.status", reply, nil))
	// NextMsg would take a timer out of the pool of nats.go: see natstest.DropTimers.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return all
		}
		if !bytes.HasPrefix(m.Data, []byte("{")) { // not from an instance
			continue
		}
		var a broker.InstanceStatus
		if err := json.Unmarshal(m.Data, &a); err != nil {
			t.Fatalf("%q: %v", m.Data, err)
		}
		all = append(all, a)
	}
}

// TestInstancesReportTheirLanes: each instance answers with its own lanes, and together they own each lane once. If the
// owner of a lane has paused its reader, it still owns the lane, and the answer has the time when reading continues.
func TestInstancesReportTheirLanes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		harness.StartBroker(t, s, harness.MemberConfig(t))
		harness.StartBroker(t, s, harness.MemberConfig(t))
		time.Sleep(10 * time.Second)
		var first time.Time
		for n := range 1000 {
			c.Publish("delay.10m.x", "x")
			if n == 0 {
				first = time.Now()
			}
		}
		time.Sleep(time.Second)
		all := ask(t, c.NC, "delayctl.status.me")
		if len(all) != 2 || all[0].Instance == all[1].Instance || all[0].Instance == "" {
			t.Fatalf("got %+v, want two instances by name", all)
		}
		var lanes []string
		for _, a := range all {
			for _, l := range a.Lanes {
				lanes = append(lanes, l.Stream)
				if !l.Live || l.InDoubt || l.Overdue != 0 {
					t.Errorf("got %+v, want a lane that is read, without overdue messages", l)
				}
				if l.Stream != "DELAY_10m" {
					continue
				}
				if l.Held < 256 || l.Held >= 1000 || l.Read != uint64(l.Held) {
					t.Errorf("got %+v, want an idle lane, with the messages in memory read", l)
				}
				if until := l.ResumesAt.Sub(first); until < 10*time.Minute-10*time.Second || until > 10*time.Minute {
					t.Errorf("reading continues %s after the first publish, want some seconds before the first due time", until)
				}
			}
		}
		slices.Sort(lanes)
		if len(lanes) != 10 || len(slices.Compact(lanes)) != 10 {
			t.Errorf("the instances own %v, want each of the 10 lanes once", lanes)
		}
	})
}

// TestInstancesAnswerOnlyAllowedSubjects: a request with a reply subject outside the allowed ones gets no answer.
// Otherwise a client could make an instance publish on a subject that only the instance may use, such as a JetStream
// API subject that purges a stream.
func TestInstancesAnswerOnlyAllowedSubjects(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		harness.StartBroker(t, s, harness.MemberConfig(t))
		c.Publish("delay.10m.x", "kept")
		for _, reply := range []string{"delaysys.hop.1s.x", "delaydead.expired.x", "elsewhere", "delayctl.owners.all",
			"delayctl.status", "_INBOX.x", "$JS.API.STREAM.PURGE.DELAY_10m"} {
			if got := ask(t, c.NC, reply); len(got) > 0 {
				t.Errorf("on %s: got %+v, want no answer", reply, got)
			}
		}
		harness.CheckCount(t, c.Arrivals("DELAY_10m"), 1)
	})
}

// TestPendingOfIdleLane: while the reader of a lane is paused, the number of pending messages is correct within
// seconds.
func TestPendingOfIdleLane(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		b := harness.StartBroker(t, s, harness.MemberConfig(t))
		for n := range 2000 {
			c.Publish("delay.10m.x", "x")
			if n == 1000 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(5 * time.Second)
		for _, l := range b.Broker.Status().Lanes {
			if l.Stream == "DELAY_10m" && (l.Pending != 2000 || l.Held >= 1000) {
				t.Errorf("%d messages pending and %d in memory, want 2000, and less than 1000", l.Pending, l.Held)
			}
		}
	})
}

// TestStatusInSeconds: /status has durations in seconds, and lists lanes in the order in which messages pass them.
func TestStatusInSeconds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		b := harness.StartBroker(t, s, harness.MemberConfig(t))
		natstest.Handle(t, c.NC, "x", func(*nats.Msg) {})
		c.Publish("delay.1s.x", "x")
		time.Sleep(2 * time.Second)
		text, err := json.Marshal(b.Broker.Status())
		natstest.NoError(t, err)
		var status struct {
			Lanes []struct {
				Stream    string
				Delay     float64
				Delivered int
			}
			Lateness map[string]struct {
				Count   int
				Buckets []struct {
					UpTo float64 `json:"up_to"`
				}
			}
		}
		natstest.NoError(t, json.Unmarshal(text, &status))
		var order []string
		for _, l := range status.Lanes {
			order = append(order, l.Stream)
			if l.Stream == "DELAY_10m" && l.Delay != 600 || l.Stream == "DELAY_1s" && l.Delivered != 1 {
				t.Errorf("got %+v, want the delay in seconds, and the number of deliveries", l)
			}
		}
		want := "DELAY_INTAKE DELAY_1s DELAY_5s DELAY_10s DELAY_1m DELAY_10m " +
			"DELAY_RETRY_1s DELAY_RETRY_5s DELAY_RETRY_30s DELAY_PAUSED"
		if got := strings.Join(order, " "); got != want {
			t.Errorf("lanes are %s, want %s", got, want)
		}
		if l := status.Lateness["level"]; l.Count != 1 || len(l.Buckets) == 0 || l.Buckets[0].UpTo != 0.001 {
			t.Errorf("lateness is %+v, want one in buckets from a millisecond", l)
		}
	})
}

// TestLostConnectionIsLoggedOnce: the program logs a lost connection, and the lanes do not log it again.
func TestLostConnectionIsLoggedOnce(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.MemberConfig(t)
		var interrupted atomic.Int64
		listener := harness.Listener{
			Phrase: "reading the lane was interrupted", Notify: func() { interrupted.Add(1) },
		}
		cfg.Log = slog.New(slog.NewTextHandler(listener, nil))
		harness.StartBroker(t, s, cfg)
		s.Restart(5 * time.Second)
		time.Sleep(time.Minute)
		if n := interrupted.Load(); n > 0 {
			t.Errorf("%d lanes log the lost connection, want none", n)
		}
	})
}
