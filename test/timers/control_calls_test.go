package timers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	asking "delaybroker/broker/client"
	"delaybroker/broker/inspect"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// answering returns the configuration of a broker that also answers requests about all streams.
func answering(s *natstest.Server, cfg broker.Config) broker.Config {
	of := cfg
	cfg.Calls = inspect.Calls(func(context.Context) (*inspect.Inspector, error) { return inspect.Open(s.Connect(), of) })
	return cfg
}

// TestControlCalls: any NATS client can request the state, the place of a message, and the forecast, with and without a
// stream of timers.
func TestControlCalls(t *testing.T) {
	t.Parallel()
	for name, timers := range map[string]bool{"with timers": true, "without": false} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimersOn(t)
			cfg.Timers = timers
			c := harness.StartBroker(t, s, answering(s, cfg)).NewClient()
			for _, wait := range []string{"1m", "1h", "1h"} {
				c.Publish("delay."+wait+".orders.x", wait)
			}
			due := time.Now().Add(time.Minute)

			var lanes inspect.Lanes
			if code := c.CallService(&lanes, "delayctl.lanes", ""); code != "" || lanes.Totals.Pending != 3 {
				t.Errorf("lanes: %s, %d pending, want 3", code, lanes.Totals.Pending)
			}
			for _, l := range lanes.Lanes {
				if l.Stream == "DELAY_1h" && (l.Pending != 2 || l.State != inspect.Serving) {
					t.Errorf("of 1h it says %+v", l)
				}
			}
			var at inspect.Whereabouts
			if code := c.CallService(&at, "delayctl.where.DELAY_1m-1", ""); code != "" || !at.Found || !at.Due.Equal(due) {
				t.Errorf("where: %s, %+v, want due %s", code, at, due)
			}
			if code := c.CallService(&at, "delayctl.where.DELAY_1m-7", ""); code != "" || at.Found {
				t.Errorf("where nothing is: %s, %+v", code, at)
			}
			var ahead inspect.Forecast
			code := c.CallService(&ahead, "delayctl.ahead", `{"for":"2h","by":"hour","target":"orders.*"}`)
			if code != "" || ahead.Pending != 3 || !ahead.Exact || len(ahead.Buckets) == 0 || ahead.Buckets[0].Messages != 1 {
				t.Errorf("ahead: %s, %+v", code, ahead)
			}
			for _, bad := range [][2]string{
				{"lanes", `{"all":true}`}, {"where.x", ""}, {"where.DELAY_1m-1", `{"most":9000000}`},
				{"ahead", `{"for":"soon"}`}, {"ahead", `{"by":"day"}`}, {"ahead", `{"target":"a..b"}`},
			} {
				checkRefused(c, bad[0], bad[1])
			}
		})
	}
}

// TestListAfterElection: a leader that was just elected does not know its followers yet. A list
// waits until that leader knows them.
func TestListAfterElection(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		began := time.Now()
		c.Timers.API.API = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			if time.Since(began) >= time.Second || !strings.HasPrefix(question, "STREAM.INFO.") {
				return false
			}
			_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{},"state":{"last_seq":9},
				"cluster":{"leader":"new","replicas":[{"name":"b","offline":true},{"name":"c","offline":true}]}}`))
			return true
		})
		_, err := c.Timers.List(t.Context(), store.Filter{}, store.Page{})
		if took := time.Since(began); err != nil || took < time.Second {
			t.Errorf("got %v after %v, want a list after a second", err, took)
		}
	})
}

// TestFullStreamOfTimers: the stream of timers is full. The service, the commands and the client say that there is no
// room. A request for a schedule gets the server's own answer.
func TestFullStreamOfTimers(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]func(*jetstream.StreamConfig){
		"bytes":    func(cfg *jetstream.StreamConfig) { cfg.MaxBytes = 100 },
		"messages": func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.BubbleWith(t, server.Options{}, func(t *testing.T, s *natstest.Server) {
				harness.StartBroker(t, s, harness.SchedulesOn(t))
				c := harness.NewSeriesClient(harness.NewClient(t, s))
				asks, err := asking.New(c.JS, asking.Config{})
				natstest.NoError(t, err)
				c.Publish("delaytimer.once.orders.x", "once", "Delay-For", "2h")
				last := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "2h").Sequence
				time.Sleep(time.Minute)
				c.Reconfigure("DELAY_TIMERS", full)
				for _, request := range []string{"timer.cancel.once.orders.x", "timer.fire.once.orders.x",
					"timer.fire.k.orders.x", "timer.pause.k.orders.x"} {
					var got any
					if code := c.CallService(&got, "delayctl."+request, ""); code != "507" {
						t.Errorf("%s is answered %q %v, want 507", request, code, got)
					}
				}
				refused := (*store.Refusal)(nil)
				if a, err := c.Timers.Do(t.Context(), harness.NewChange(timer.Cancel, "once", 0)); !errors.As(err, &refused) ||
					refused.Code != 507 || !strings.Contains(refused.Sentence, "maximum "+name+" exceeded") {
					t.Errorf("the verb says %+v, %v", a, err)
				}
				if err := asks.Pause(t.Context(), "k", "orders.x"); !errors.Is(err, asking.ErrFull) {
					t.Errorf("the client says %v", err)
				}
				soon := harness.At(time.Now().Add(time.Hour))
				if _, code := c.Schedule("schedules.orders.a", "orders.x", soon, "hi"); code != 10077 {
					t.Errorf("a schedule is answered %d, want 10077", code)
				}
				checkLast(c.Client, "delaytimer.k.orders.x", last)
			})
		})
	}
}
