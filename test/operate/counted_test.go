package operate

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/streams"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimerCountsOnce: a named timer has an entry in the stream of timers, and a marker in a level. It counts once in
// the total of the lanes, in the forecast, and in the sum that the dashboard shows.
func TestTimerCountsOnce(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 1m 1h"), Timers: true}
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		operator := harness.Inspect(t, s, cfg)
		i, c := harness.Start(t, s, cfg)
		for _, key := range []string{"a", "b", "c"} {
			c.Publish("delaytimer."+key+".orders.x", "x", "Delay-For", "2h")
		}
		c.Publish("delay.1h.orders.x", "x")
		time.Sleep(2 * time.Minute) // longer than the interval at which the broker requests the number of entries
		const want = 4
		v, err := operator.Lanes(t.Context(), 0)
		natstest.NoError(t, err)
		if v.Totals.Pending != want {
			t.Errorf("the total of the lanes is %d, want %d", v.Totals.Pending, want)
		}
		f, err := operator.Forecast(t.Context(), inspect.ForecastQuery{Length: time.Hour, Step: time.Hour, MaxRead: 100})
		natstest.NoError(t, err)
		if f.Pending != want {
			t.Errorf("the forecast has %d messages, want %d", f.Pending, want)
		}

		text, err := os.ReadFile("../deploy/dashboard.json")
		natstest.NoError(t, err)
		panel := regexp.MustCompile(`"sum\(delaybroker_lane_pending_messages\{job=~\\"\$job\\"(.*)\}\)"`).FindSubmatch(text)
		if panel == nil {
			t.Fatal("the dashboard has no sum of pending messages")
		}
		sum, left := 0.0, strings.Contains(string(panel[1]), `kind!=\"`+string(streams.Timers)+`\"`)
		for name, value := range scrape(t, i) {
			if strings.HasPrefix(name, "lane_pending_messages ") && !(left && name == "lane_pending_messages DELAY_TIMERS") {
				sum += value
			}
		}
		if sum != want {
			t.Errorf("the dashboard shows %v messages, want %d", sum, want)
		}
	})
}
