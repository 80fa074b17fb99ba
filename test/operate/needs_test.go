package operate

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/broker/streams/provision"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestNeeds: a running broker has exactly the streams, consumers and connections that its configuration needs, and no
// connection has more subscriptions.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*broker.Config){
		"all":       func(*broker.Config) {},
		"no timers": func(c *broker.Config) { c.Timers = false },
		"journal":   func(c *broker.Config) { c.Journal = time.Hour },
		"one level": func(c *broker.Config) { c.Ladder = harness.Ladder(t, "1s") },
		"few levels": func(c *broker.Config) {
			c.Ladder, c.RetryLadder = harness.Ladder(t, "1s 1m"), harness.Ladder(t, "5s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := harness.MemberConfig(t)
			cfg.Timers, cfg.IntakeDurations = true, []string{}
			cfg.Calls = operation.Calls(func(context.Context) (*inspect.Inspector, error) {
				return nil, nats.ErrInvalidConnection
			})
			change(&cfg)
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				b, c := harness.Start(t, s, cfg)
				time.Sleep(time.Minute)
				cfg.Leaser = nil
				configured, err := broker.StreamsOf(cfg)
				natstest.NoError(t, err)
				want := provision.ResourcesOf(configured.Wanted(c.NC.MaxPayload(), false))
				var got provision.Resources
				for info := range c.JS.ListStreams(t.Context()).Info() {
					got.Streams++
					got.Consumers += info.State.Consumers
				}
				for _, nc := range []*nats.Conn{b.Links.Read, b.Links.Write, b.Links.Deliver, b.Links.Control} {
					got.Connections++
					got.Subscriptions = max(got.Subscriptions, nc.NumSubscriptions())
					t.Log(nc.Opts.Name, nc.NumSubscriptions())
				}
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			})
		})
	}
}
