package operate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/doctor"
	"delaybroker/broker/stats"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// An act is what an operator does to a running broker's streams, consumers or account.
type act struct {
	name   string
	do     func(s scene)
	doctor string // what doctor says; empty if the act does no harm
}

// edit returns an act that edits the stream of a lane.
func edit(stream string, change func(*jetstream.StreamConfig)) func(scene) {
	return func(s scene) { s.Reconfigure(stream, change) }
}

// consumers returns an act on each consumer of the lanes.
func consumers(f func(ctx context.Context, s scene, stream, consumer string) error) func(scene) {
	return func(s scene) {
		ctx := context.Background()
		for _, stream := range lanes {
			for name := range s.Stream(stream).ConsumerNames(ctx).Name() {
				natstest.NoError(s.T, f(ctx, s, stream, name))
			}
		}
	}
}

// editConsumer changes the configuration of a consumer of a lane.
func editConsumer(change func(*jetstream.ConsumerConfig)) func(scene) {
	return consumers(func(ctx context.Context, s scene, stream, name string) error {
		c, err := s.JS.Consumer(ctx, stream, name)
		if err != nil {
			return err
		}
		cfg := c.CachedInfo().Config
		change(&cfg)
		_, err = s.JS.UpdateConsumer(ctx, stream, cfg)
		return err
	})
}

// TestOperatorsActs: after each act, all messages are delivered on time, without a restart; or doctor names the act,
// because messages may be lost, late or delivered twice.
func TestOperatorsActs(t *testing.T) {
	t.Parallel()
	for _, a := range []act{
		{"consumer with max_bytes of a request", editConsumer(func(c *jetstream.ConsumerConfig) {
			c.MaxRequestMaxBytes = 1
		}), ""},
		{"consumer with a shorter expiry of a request", editConsumer(func(c *jetstream.ConsumerConfig) {
			c.MaxRequestExpires = time.Second
		}), ""},
		{"consumer with another inactive threshold", editConsumer(func(c *jetstream.ConsumerConfig) {
			c.InactiveThreshold = time.Second
		}), ""},
		{"consumer with a filter", editConsumer(func(c *jetstream.ConsumerConfig) {
			c.FilterSubjects, c.FilterSubject = nil, "none"
		}), ""},
		{"consumer reset", consumers(func(ctx context.Context, s scene, stream, name string) error {
			_, err := s.NC.RequestWithContext(ctx, "$JS.API.CONSUMER.RESET."+stream+"."+name, nil)
			return err
		}), ""},
		{"purge denied", edit("DELAY_1m", func(c *jetstream.StreamConfig) { c.DenyPurge = true }), "deny_purge"},
		{"delete denied", edit("DELAY_1s", func(c *jetstream.StreamConfig) { c.DenyDelete = true }), "deny_delete"},
		{"no direct gets", edit("DELAY_TIMERS", func(c *jetstream.StreamConfig) { c.AllowDirect = false }), ""},
		{"one message", edit("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 }), ""},
		{"account without memory", func(s scene) {
			harness.AccountLimit(s.Client, s.server, func(l *server.JetStreamAccountLimits) { l.MaxMemory = 0 }).Reach()
			consumers(func(ctx context.Context, s scene, stream, name string) error {
				return s.JS.DeleteConsumer(ctx, stream, name)
			})(s)
		}, ""},
		{"expiry of messages", edit("DELAY_1m", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }), "max_age"},
		{"one message of a subject", edit("DELAY_1m", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }),
			"max_msgs_per_subject"},
		{"discard old", edit("DELAY_1m", func(c *jetstream.StreamConfig) {
			c.Discard, c.MaxMsgs = jetstream.DiscardOld, 1000
		}), "discard"},
		{"no acknowledgements", edit("DELAY_1m", func(c *jetstream.StreamConfig) { c.NoAck = true }), "no_ack"},
		{"subject transform", edit("DELAY_1m", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "delay.1m.>", Destination: "other.>"}
		}), "transform"},
		{"subjects taken away", edit("DELAY_1m", func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[:1] }),
			"does not listen on"},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.try(t)
		})
	}
}

func (a act) try(t *testing.T) {
	natstest.BubbleWith(t, server.Options{Users: users(), NoAuthUser: "client"}, func(t *testing.T, s *natstest.Server) {
		cfg := harness.MemberConfig(t)
		cfg.Ladder, cfg.Timers, cfg.IntakeDurations = harness.Ladder(t, "1s 5s 1m"), true, []string{}
		b := harness.StartBroker(t, s, cfg, nats.UserInfo("broker", "b"))
		sc := startScene(t, s)
		a.do(sc)
		sc.Publish("delay.1s.t.during", "during")
		sc.Publish("delaytimer.l.t.during", "timer", "Delay-For", "5s")
		time.Sleep(45 * time.Second)
		if a.doctor != "" {
			i := harness.Inspect(t, s, cfg)
			var said []string
			for _, f := range doctor.Gather(t.Context(), i, doctor.Host{SkipTrial: true}, nil).Findings() {
				if f.Severity >= doctor.Warn && strings.Contains(f.Detail, a.doctor) {
					b.Crash() // a clean stop could not commit
					return
				}
				if f.Severity > doctor.Fine {
					said = append(said, f.Detail)
				}
			}
			t.Errorf("doctor says %q, want a finding about %s", said, a.doctor)
		}
		got := sc.Arrivals("T")
		harness.CheckBodies(t, got, "during intake level timer×2")
		for _, m := range got {
			if late := m.At.Sub(m.Due); late > stats.MaxOverdue {
				t.Errorf("%s is late by %s", m.Body, late)
			}
		}
		if text := fmt.Sprint(stats.FailingChecks(readiness(b))); text != "[]" {
			t.Errorf("/readyz says %s", text)
		}
	})
}
