package operate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/stats/metrics"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// scrape returns the metrics of an instance by name and labels. It omits zeros, and metrics that are not about
// messages.
func scrape(t *testing.T, i *harness.Instance) map[string]float64 {
	t.Helper()
	synctest.Wait()
	families, err := metrics.New(metrics.Source{Status: i.Broker.Status, Ready: func() bool { return true }}).Gather()
	if err != nil {
		t.Fatalf("gather: %v", err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), "delaybroker_")
		if !ours || slices.Contains([]string{"build_info", "ready", "link_up", "lane_owned", "lane_live",
			"early_checks_total"}, name) {
			continue
		}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetName() != "kind" || f.GetType() == dto.MetricType_HISTOGRAM {
					labels = append(labels, l.GetValue())
				}
			}
			key := strings.TrimSpace(name + " " + strings.Join(labels, " "))
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[key+" count"] = float64(m.Histogram.GetSampleCount())
				all[key+" sum"] = m.Histogram.GetSampleSum()
				for _, b := range m.Histogram.Bucket {
					if n := b.GetCumulativeCount(); n > 0 { // the first bucket that is not empty
						all[fmt.Sprintf("%s up to %v", key, b.GetUpperBound())] = float64(n)
						break
					}
				}
			case dto.MetricType_COUNTER:
				all[key] = m.Counter.GetValue()
			default:
				all[key] = m.Gauge.GetValue()
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, v float64) bool { return v == 0 })
	return all
}

// wantFigures fails the test unless the metrics have these values. Metrics whose names begin with one of ignored are
// not compared.
func wantFigures(t *testing.T, when string, got, want map[string]float64, ignored ...string) {
	t.Helper()
	maps.DeleteFunc(got, func(key string, _ float64) bool {
		return slices.ContainsFunc(ignored, func(a string) bool { return strings.HasPrefix(key, a) })
	})
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if got[key] != want[key] {
			t.Errorf("%s: %s is %v, want %v", when, key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[key]; !ok {
			t.Errorf("%s: %s is missing, want %v", when, key, want[key])
		}
	}
}

// wantValues checks the values of some metrics. The value of a missing metric is zero.
func wantValues(t *testing.T, when string, got, want map[string]float64) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %s is %v, want %v", when, key, got[key], value)
		}
	}
}

// sizes are metrics whose values depend on the storage formats of the broker and the server.
var sizes = []string{"lane_held_bytes", "lane_stream_bytes", "lane_next_due"}

func TestMetrics(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		i := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"),
			Deliver: deliver.Modes{Default: message.ModeStream}})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		wantFigures(t, "at the start", scrape(t, i), nil, sizes...)

		for _, subject := range []string{
			"delay.1s.orders.a", "delay.1s.orders.b", "delay.1s.orders.c", // three that are delivered
			"delay.1s.nobody.a",                      // refused, since no stream has it
			"delayin.soon.orders.a",                  // a dead letter
			"delay.1m.orders.d", "delay.1m.orders.e", // pending
		} {
			c.Publish(subject, "x")
		}
		time.Sleep(1700 * time.Millisecond)
		want := map[string]float64{
			"lane_delivered_total DELAY_1s":      3,
			"lateness_seconds level count":       3,
			"lateness_seconds level up to 0.001": 3,
			"lane_retries_total DELAY_1s":        1,
			"deliveries_total delivered":         3,
			"deliveries_total refused":           1,
			"dead_letters_total bad_time":        1,

			"lane_pending_messages DELAY_1m": 2, "lane_held_messages DELAY_1m": 2, "lane_span_messages DELAY_1m": 2,
			"lane_wheel_messages DELAY_1m": 2,
			// The refused message waits for its next attempt.
			"lane_pending_messages DELAY_RETRY_1s": 1, "lane_held_messages DELAY_RETRY_1s": 1,
			"lane_span_messages DELAY_RETRY_1s": 1, "lane_wheel_messages DELAY_RETRY_1s": 1,
			"lane_overdue_seconds DELAY_RETRY_1s": 0.7,
		}
		wantFigures(t, "while a message waits for its second attempt", scrape(t, i), want, sizes...)
		if n := i.Broker.Status().EarlyChecks; n != 1 {
			t.Errorf("%d checks of the clock, want one, by the commit after the three deliveries", n)
		}

		c.Target("NOBODY", "nobody.>")
		time.Sleep(300 * time.Millisecond)
		maps.DeleteFunc(want, func(key string, _ float64) bool { return strings.Contains(key, "RETRY") })
		maps.Copy(want, map[string]float64{
			"lane_delivered_total DELAY_RETRY_1s": 1,
			"deliveries_total delivered":          4,
			"lateness_seconds retry count":        1, "lateness_seconds retry sum": 1,
			"lateness_seconds retry up to 1": 1,
		})
		got := scrape(t, i)
		wantFigures(t, "after the second attempt", got, want, append(sizes, "lane_commit_age")...)
		time.Sleep(time.Second)
		wantFigures(t, "after the commit", scrape(t, i), want, sizes...)

		checkMetricsCutOff(t, s, i, want)
	})
}

// checkMetricsCutOff stops the server for some seconds. The reported age of messages that become due in this time is
// exact, although the broker cannot deliver them.
func checkMetricsCutOff(t *testing.T, s *natstest.Server, i *harness.Instance, want map[string]float64) {
	t.Helper()
	s.Stop()
	time.Sleep(61500 * time.Millisecond) // the messages were published three seconds before
	got := scrape(t, i)
	want["lane_overdue_seconds DELAY_1m"] = 4.5
	wantFigures(t, "without the server", got, want, append(sizes, "link_reconnects")...)
	s.Start()
	time.Sleep(time.Second)
	maps.DeleteFunc(want, func(key string, _ float64) bool { return strings.Contains(key, "DELAY_1m") })
	maps.Copy(want, map[string]float64{"lane_delivered_total DELAY_1m": 2, "deliveries_total delivered": 6,
		"lateness_seconds level count": 5})
	got = scrape(t, i)
	if late := got["lateness_seconds level sum"]; late < 9 || late > 10 {
		t.Errorf("two messages were late by %v s together, want 9 s, and at most one more for the reconnect", late)
	}
	wantFigures(t, "after the restart of the server", got, want,
		append(sizes, "link_reconnects", "lateness_seconds level sum")...)
	for _, link := range []string{"read", "write", "deliver", "control"} {
		if n := scrape(t, i)["link_reconnects_total "+link]; n != 1 {
			t.Errorf("%s: %v reconnects, want 1", link, n)
		}
	}
}
