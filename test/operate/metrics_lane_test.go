package operate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/stats/metrics"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestMetricsOfFullLane publishes into a lane whose owner already holds the maximum number of messages.
func TestMetricsOfFullLane(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 1h"), HoldMessages: 16}
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, i *harness.Instance) {
		publish := func(n int) {
			for range n {
				c.Publish("delay.1h.orders.a", "x")
			}
		}
		want := func(when string, pending, held float64) {
			t.Helper()
			wantValues(t, when, scrape(t, i), map[string]float64{
				"lane_pending_messages DELAY_1h": pending, "lane_held_messages DELAY_1h": held, "lane_overdue_seconds DELAY_1h": 0,
			})
		}
		publish(20)
		time.Sleep(time.Second) // until the broker has read the messages
		want("with room", 20, 20)
		publish(80)
		time.Sleep(time.Minute)
		want("without room", 100, 32)
		publish(1000)
		time.Sleep(2 * time.Minute) // longer than the interval at which the broker requests the number of messages
		want("with more messages behind", 1100, 32)
		lane := c.Stream("DELAY_1h")
		natstest.NoError(t, lane.Purge(context.Background(), jetstream.WithPurgeSequence(501)))
		time.Sleep(2 * time.Minute)
		if got := scrape(t, i)["lane_pending_messages DELAY_1h"]; got < 600 || got > 632 {
			t.Errorf("after a purge of 500 messages, with 32 in memory: %v pending, want 600 to 632", got)
		}
	})
}

// TestMetricsOfUncertainLane: while an instance does not know whether it still owns a lane, messages that become due
// there are overdue.
func TestMetricsOfUncertainLane(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := harness.NewUncertainLeaser()
		i := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s"), Leaser: f})
		lease := <-f.Leases
		c := harness.NewClient(t, s)
		c.Publish("delayin.500ms.orders.x", "x")
		time.Sleep(100 * time.Millisecond)
		f.Valid.Store(false)
		time.Sleep(time.Minute)
		got := scrape(t, i)
		if doubt, overdue := got["lane_in_doubt DELAY_INTAKE"], got["lane_overdue_seconds DELAY_INTAKE"]; doubt != 1 ||
			overdue < 59.5 || overdue > 59.6 {
			t.Errorf("in doubt %v, overdue %v s; want 1, and 59.5 to 59.6", doubt, overdue)
		}
		f.Valid.Store(true)
		lease.Resume <- struct{}{}
		time.Sleep(time.Second)
		got = scrape(t, i)
		if doubt, overdue := got["lane_in_doubt DELAY_INTAKE"], got["lane_overdue_seconds DELAY_INTAKE"]; doubt != 0 ||
			overdue != 0 {
			t.Errorf("with a valid lease again: in doubt %v, overdue %v s, want zero", doubt, overdue)
		}
	})
}

// TestMetricsOfStandby: of a lane, the only metric of a stand-by is lane_owned, with the value 0.
func TestMetricsOfStandby(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		active, c := harness.Start(t, s, harness.MemberConfig(t))
		i := harness.StartBroker(t, s, harness.MemberConfig(t))
		c.Publish("delay.1s.orders.a", "x")
		synctest.Wait()
		families, err := metrics.New(metrics.Source{Status: i.Broker.Status,
			Ready: func() bool { return true }}).Gather()
		natstest.NoError(t, err)
		gauges := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if l.GetValue() == "DELAY_1s" {
						gauges[f.GetName()] = m.GetGauge().GetValue()
					}
				}
			}
		}
		if owned, ok := gauges["delaybroker_lane_owned"]; len(gauges) != 1 || !ok || owned != 0 {
			t.Errorf("the metrics of a stand-by's lane are %v, want only lane_owned 0", gauges)
		}
		if got := scrape(t, active)["lane_pending_messages DELAY_1s"]; got != 1 {
			t.Errorf("%v pending in the active instance's lane, want 1", got)
		}
	})
}
