package operate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
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
		f := harness.NewUncertainLeaser("DELAY_INTAKE")
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
		lease.Tick <- struct{}{}
		time.Sleep(time.Second)
		got = scrape(t, i)
		if doubt, overdue := got["lane_in_doubt DELAY_INTAKE"], got["lane_overdue_seconds DELAY_INTAKE"]; doubt != 0 ||
			overdue != 0 {
			t.Errorf("with a valid lease again: in doubt %v, overdue %v s, want zero", doubt, overdue)
		}
	})
}

// TestMetricsOfForeignLanes: of a lane that another instance owns, the only metric is lane_owned, with the value 0.
func TestMetricsOfForeignLanes(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Leaser: harness.StaticLeaser("DELAY_5s")}
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, i *harness.Instance) {
		c.Publish("delay.1s.orders.a", "x")
		c.Publish("delay.5s.orders.a", "x")
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
			t.Errorf("the metrics of another instance's lane are %v, want only lane_owned 0", gauges)
		}
		if got := scrape(t, i)["lane_pending_messages DELAY_5s"]; got != 1 {
			t.Errorf("%v pending in the instance's own lane, want 1", got)
		}
	})
}

// TestMetricsOfDeferredDeliveries: messages that wait for their send time at a target with a rate do not count as late,
// and raise no alert. Messages for a silent service count as late.
func TestMetricsOfDeferredDeliveries(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		i := harness.StartBroker(t, s, broker.Config{
			Ladder: harness.Ladder(t, "1s 5s"), RetryLadder: harness.Ladder(t, "30s"),
			Rates:     deliver.Rates{{Pattern: "slow.>", Value: 1}},
			HoldBytes: 1 << 30,
			Deliver: deliver.Modes{Default: message.ModeStream,
				Rules: message.Rules[message.Mode]{{Pattern: "service", Value: message.ModeRequest}}},
		})
		c := harness.NewClient(t, s)
		c.Target("SLOW", "slow.>")
		c.PublishMany("delay.1s.slow.a", 3)
		time.Sleep(2500 * time.Millisecond)
		wantValues(t, "while a message waits for its turn", scrape(t, i), map[string]float64{
			"deliveries_total delivered": 2, "deliveries_total paced": 2, "lane_pending_messages DELAY_1s": 1,
			"lane_overdue_seconds DELAY_1s": 0,
		})
		time.Sleep(time.Second)
		wantValues(t, "after the last turn", scrape(t, i), map[string]float64{
			"deliveries_total delivered": 3, "deliveries_total paced": 2, "lateness_seconds level sum": 0,
			"lane_retries_total DELAY_1s": 0,
		})

		const share, more = 4096, 7 // the maximum number of unanswered messages to one target, and the waiting messages
		c.Subscribe("service")
		c.PublishMany("delay.1s.service", share+more)
		time.Sleep(1500 * time.Millisecond) // the broker defers the waiting messages
		wantValues(t, "with a silent service", scrape(t, i), map[string]float64{
			"deliveries_total refused": 0, "deliveries_total stalled": more, "lane_retries_total DELAY_1s": more,
		})
		// The broker defers them twice more, until the unanswered messages count as refused.
		time.Sleep(19500 * time.Millisecond)
		wantValues(t, "after some time", scrape(t, i), map[string]float64{
			"deliveries_total refused": share + more, "deliveries_total stalled": 3 * more,
			"lane_retries_total DELAY_1s":          share + more,
			"lane_overdue_seconds DELAY_RETRY_30s": 20,
		})
	})
}
