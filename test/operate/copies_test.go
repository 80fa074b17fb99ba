package operate

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestCopiesOfStreams: an operator copies each of the broker's streams, as nats stream copy does, with the metadata.
// The next broker starts, serves its own streams, does not change the copies, and names them.
func TestCopiesOfStreams(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 30s"), Journal: time.Hour, Timers: true}
		first := harness.StartBroker(t, s, cfg)
		c := first.NewClient()
		c.Target("ORDERS", "orders.>")
		var copies []string
		for info := range c.JS.ListStreams(t.Context()).Info() {
			if _, marked := info.Config.Metadata["delaybroker.kind"]; marked {
				info.Config.Name += "_BAK"
				info.Config.Subjects = []string{"bak." + info.Config.Name}
				copies = append(copies, info.Config.Name)
				c.Create(info.Config)
			}
		}
		first.Stop()

		log := harness.NewCountingLog()
		cfg.Log = slog.New(log)
		harness.StartBroker(t, s, cfg)
		start := time.Now()
		c.Publish("delay.1s.orders.level", "level")
		c.Publish("delaytimer.k.orders.timer", "timer", message.HeaderFor, "1s")
		c.Publish("delayin.1s.orders.intake", "intake")
		time.Sleep(time.Minute)
		arrivals := c.Arrivals("ORDERS")
		harness.CheckCount(t, arrivals, 3)
		for _, a := range arrivals {
			if !a.At.Equal(start.Add(time.Second)) {
				t.Errorf("%s arrived after %s, want 1s", a.Body, a.At.Sub(start))
			}
		}
		if got := log.CountPrefix("a stream is a copy of one of a broker's streams"); got != len(copies) || got < 8 {
			t.Errorf("the log names %d copies, want %d", got, len(copies))
		}
		for info := range c.JS.ListStreams(t.Context()).Info() {
			name := info.Config.Name
			if want := []string{"bak." + name}; slices.Contains(copies, name) && !slices.Equal(info.Config.Subjects, want) {
				t.Errorf("%s listens on %v now, want %v", name, info.Config.Subjects, want)
			}
		}
		c.CheckNoDead()
	})
}
