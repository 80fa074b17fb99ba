package operate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/web"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// older returns the configuration of an instance that cannot read the newest format.
func older(t testing.TB) broker.Config {
	cfg := harness.MemberConfig(t, 3)
	cfg.Format, cfg.Version = message.Format-1, "v1"
	return cfg
}

// publishNewer publishes a message of the newest format into a level, as a hop of the nth message of the intake.
func publishNewer(c *harness.Client, n int, level, body string, delay time.Duration) {
	now := time.Now().UTC()
	c.PublishSealed(c.Keys("delay"), "delaysys.hop."+level+".orders.x", body,
		message.HeaderFormat, strconv.Itoa(message.Format), message.HeaderHop, "1",
		message.HeaderID, fmt.Sprintf("DELAY_INTAKE-%d-1", n), message.HeaderAccepted, now.Format(time.RFC3339Nano),
		message.HeaderDue, now.Add(delay).Format(time.RFC3339Nano))
}

// ownerOf returns the instance that owns a lane, or nil.
func ownerOf(stream string, all ...*harness.Instance) *harness.Instance {
	for _, i := range all {
		for _, l := range i.Broker.Status().Lanes {
			if l.Stream == stream && l.Owned {
				return i
			}
		}
	}
	return nil
}

// TestLaneGoesToNewerInstance: an instance gives up a lane with a message that it cannot read, while a newer instance
// lives. The message is on time, and the other lanes stay shared. When the newer instance stops, the older one owns all
// lanes again.
func TestLaneGoesToNewerInstance(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := harness.StartBroker(t, s, older(t))
		b, c := harness.Start(t, s, harness.MemberConfig(t, 3))
		c.Target("ORDERS", "orders.>")
		time.Sleep(20 * time.Second)
		start, lanes := time.Now(), []string{"5s", "10s", "1m", "10m"}
		moved := 0
		for n, l := range lanes {
			if ownerOf("DELAY_"+l, a, b) == a {
				moved++
			}
			publishNewer(c, n+1, l, "newer in "+l, 10*time.Minute)
		}
		if moved == 0 {
			t.Fatal("the older instance owns none of the lanes")
		}
		time.Sleep(10*time.Minute - 1)
		for _, l := range lanes {
			if owner := ownerOf("DELAY_"+l, a, b); owner != b {
				t.Errorf("DELAY_%s is not owned by the newer instance", l)
			}
		}
		if got := c.Arrivals("ORDERS"); len(got) != 0 {
			t.Errorf("%d arrived early", len(got))
		}
		c.CheckArrivals("ORDERS", start.Add(10*time.Minute), "newer in 10m", "newer in 10s", "newer in 1m", "newer in 5s")
		if ownerOf("DELAY_INTAKE", a, b) == nil || len(a.Broker.Answer().Lanes) == 0 {
			t.Error("no instance owns the intake, or the older instance owns no lane")
		}
		b.Stop()
		time.Sleep(time.Second)
		harness.CheckOwned(t, []int{harness.MemberLanes}, a)
	})
}

// TestNewerMessageIsReported: without a newer instance, the lane stays with its owner. All reports to an operator name
// the reason.
func TestNewerMessageIsReported(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a, c := harness.Start(t, s, older(t))
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
			Engine: a.Broker, LinkErrors: func() map[string]string { return nil }, Stopping: stopping,
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
		if want := name + " owns its lane and reads formats up to 3; the message has format 4"; err != nil ||
			!strings.HasSuffix(w.Answer, want) {
			t.Errorf("where: got %q, %v; want %q", w.Answer, err, want)
		}
		harness.StartBroker(t, s, harness.MemberConfig(t, 3)) // will take over the lane
		for check, want := range map[string]string{
			"lanes":    "lanes with messages of a newer broker, which their owner cannot read: DELAY_5s of " + name,
			"versions": "instances with different formats of messages: ",
		} {
			found := doctor.Gather(t.Context(), o, doctor.Host{}, nil).Findings()
			if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
				return f.Check == check && f.Severity > doctor.Fine && strings.Contains(f.Detail, want)
			}) {
				t.Errorf("doctor: got no %q in %+v", want, found)
			}
		}
	})
}
