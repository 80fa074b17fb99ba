package operate

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/fault"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/web"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// newer returns the configuration of an instance that reads one format more than this version.
func newer(t testing.TB) broker.Config {
	cfg := harness.MemberConfig(t)
	cfg.Format, cfg.Version = message.Format+1, "v2"
	return cfg
}

// publishNewer publishes a message of the format after this version's into a level, as a hop of the nth message of the
// intake.
func publishNewer(c *harness.Client, n int, level, body string, delay time.Duration) {
	now := time.Now()
	r := message.Request{ID: fmt.Sprintf("DELAY_INTAKE-%d-1", n), Accepted: now, Due: now.Add(delay)}
	state := strings.Replace(r.HopHeader()[message.HeaderState][0], "1 ", "2 ", 1)
	c.PublishSealed(c.Keys("delay"), "delaysys.hop."+level+".orders.x", body, message.HeaderState, state)
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
				message.HeaderState, "2 whatever this is")
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

// TestNewerInstanceBecomesActive: an instance that reads a message of a newer format hands over to a stand-by that can
// read it. The message is on time. When the newer instance stops, the older one is active again.
func TestNewerInstanceBecomesActive(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := harness.StartBroker(t, s, harness.MemberConfig(t))
		b, c := harness.Start(t, s, newer(t))
		c.Target("ORDERS", "orders.>")
		time.Sleep(20 * time.Second)
		harness.CheckActive(t, 0, a, b)
		start := time.Now()
		for n, l := range []string{"5s", "10s", "1m", "10m"} {
			publishNewer(c, n+1, l, "newer in "+l, 10*time.Minute)
		}
		time.Sleep(time.Second)
		harness.CheckActive(t, 1, a, b)
		time.Sleep(time.Until(start.Add(10*time.Minute - 1)))
		if got := c.Arrivals("ORDERS"); len(got) != 0 {
			t.Errorf("%d arrived early", len(got))
		}
		c.CheckArrivals("ORDERS", start.Add(10*time.Minute), "newer in 10m", "newer in 10s", "newer in 1m", "newer in 5s")
		b.Stop()
		time.Sleep(time.Second)
		harness.CheckActive(t, 0, a, b)
	})
}

// TestNewerMessageIsReported: without a newer instance, the lane stays with its owner. All reports to an operator name
// the reason.
func TestNewerMessageIsReported(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a, c := harness.Start(t, s, harness.MemberConfig(t))
		publishNewer(c, 1, "5s", "newer", 5*time.Second)
		time.Sleep(time.Minute)
		status := a.Broker.Status()
		for _, l := range status.Lanes {
			if l.Stream == "DELAY_5s" && (l.NewerMessages != 1 || l.Overdue != 55*time.Second) {
				t.Errorf("status: %d messages of a newer format, overdue for %v; want 1 and 55s", l.NewerMessages, l.Overdue)
			}
		}
		stopping := make(chan struct{})
		ready := web.Source{
			Engine: a.Broker, LinkFaults: func() map[string]fault.Fault { return nil }, Stopping: stopping,
			Durability: new(atomic.Pointer[string]),
		}.Checks()
		if !slices.ContainsFunc(ready, func(c stats.Check) bool {
			return c.Name == "lanes" && !c.OK && c.Detail == "hold messages that only a newer broker can read: DELAY_5s"
		}) {
			t.Errorf("readyz has the checks %+v", ready)
		}
		o, name := harness.Operator(t, s), a.Broker.Instance()
		v, err := o.Lanes(t.Context(), 0)
		natstest.NoError(t, err)
		for _, l := range v.Lanes {
			if l.Stream == "DELAY_5s" && (l.State != inspect.TooNew || l.Overdue != 55) {
				t.Errorf("levels: got %s, overdue for %v seconds", l.State, l.Overdue)
			}
		}
		wanted, err := inspect.ParseMessageRef("DELAY_INTAKE-1-1")
		natstest.NoError(t, err)
		w, err := o.Where(t.Context(), wanted, 1000, func(uint64, uint64) {})
		if want := name + " owns its lane and reads formats up to 1; the message has format 2"; err != nil ||
			!strings.HasSuffix(w.Answer, want) {
			t.Errorf("where: got %q, %v; want %q", w.Answer, err, want)
		}
		finds := func(check, want string) {
			t.Helper()
			found := doctor.Gather(t.Context(), o, doctor.Host{}, nil).Findings()
			if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
				return f.Check == check && f.Severity > doctor.Fine && strings.Contains(f.Detail, want)
			}) {
				t.Errorf("doctor: got no %q in %+v", want, found)
			}
		}
		finds("lanes", "lanes with messages of a newer broker, which their owner cannot read: DELAY_5s of "+name)
		harness.StartBroker(t, s, newer(t))
		finds("versions", "instances with different formats of messages: ")
	})
}
