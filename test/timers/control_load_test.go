package timers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker"
	asking "delaybroker/broker/client"
	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestHugeAndManyRequests: the service refuses requests that are too large. If too many requests arrive, each gets its
// answer or a refusal as busy. The outcome of a generation that no stream has is "unknown".
func TestHugeAndManyRequests(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence
		var got any
		huge := `{"generation":1,"word":"` + strings.Repeat("x", 9000) + `"}`
		for _, subject := range []string{"timer.cancel.k.orders.x", "timers", "cancel-all", "shift"} {
			if code := c.CallService(&got, "delayctl."+subject, huge); code != "413" {
				t.Errorf("the answer to %s with %d bytes is %q %v, want 413", subject, len(huge), code, got)
			}
		}
		const many = 500
		answers := make(chan *nats.Msg, many)
		inbox := c.NC.NewInbox()
		if _, err := c.NC.ChanSubscribe(inbox, answers); err != nil {
			t.Fatal(err)
		}
		for i := range many {
			m := harness.NewMsg("delayctl.timer.cancel.k.orders.x", `{"generation":9223372036854775807}`)
			if i%2 > 0 {
				m = harness.NewMsg("delayctl.timers", fmt.Sprintf(`{"key":%q}`, strings.Repeat("*k", 2000)))
			}
			m.Reply = inbox
			natstest.NoError(t, c.NC.PublishMsg(m))
		}
		time.Sleep(time.Minute)
		outcomes := make(map[string]int)
		for range len(answers) {
			m := <-answers
			var said change.Answer
			_ = json.Unmarshal(m.Data, &said) // a list has no outcome
			outcomes[m.Header.Get(micro.ErrorCodeHeader)+string(said.Outcome)]++
		}
		n := outcomes["unknown"] + outcomes["429"] + outcomes[""]
		if outcomes["unknown"] == 0 || outcomes["429"] == 0 {
			t.Errorf("the answers to %d requests are %v; want some unknown, and the others refused as busy", many, outcomes)
		} else if n != many {
			t.Errorf("of %d requests %d were answered: %v", many, n, outcomes)
		}
		checkLast(c, "delaytimer.k.orders.x", g)
		var a change.Answer
		if c.CallService(&a, "delayctl.timer.cancel.k.orders.x", ""); a.Outcome != timer.Cancelled {
			t.Errorf("afterwards a cancel returns %+v", a)
		}
	})
}

// TestControlMany: list, cancel and shift apply exactly to the timers with the target in the request's subject, or with
// a target below it.
func TestControlMany(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		var in []*harness.Inbox
		for _, targets := range []string{"orders", "orders.>", "ordersx", "payments.>"} {
			in = append(in, c.Subscribe(targets))
		}
		start := time.Now()
		for i := range 30 {
			c.Publish(fmt.Sprintf("delaytimer.k%d.orders.x", i), "x", "Delay-For", "10m")
		}
		c.Publish("delaytimer.k.orders", "bare", "Delay-For", "10m")
		c.Publish("delaytimer.k.ordersx", "other", "Delay-For", "10m")
		c.Publish("delaytimer.k.payments.x", "payment", "Delay-For", "10m")
		var l store.Listing
		pages, keys := 0, 0
		for after := uint64(0); pages == 0 || after > 0; pages++ {
			l = store.Listing{}
			c.CallService(&l, "delayctl.timers.orders", fmt.Sprintf(`{"limit":10,"after":%d,"up_to":%d}`, after, l.UpTo))
			keys += len(l.Timers)
			after = l.Next
		}
		if pages != 4 || keys != 31 {
			t.Errorf("%d pages list %d timers, want 31 on 4", pages, keys)
		}
		l = store.Listing{}
		c.CallService(&l, "delayctl.timers", `{"key":"k2*","due_before":"2000-01-01T00:10:00.000000001Z"}`)
		if len(l.Timers) != 11 || l.Timers[0].Key != "k2" || l.Timers[0].State != timer.Pending || l.Timers[0].Size != 1 ||
			!l.Timers[0].Due.Equal(start.Add(10*time.Minute)) {
			t.Errorf("k2* lists %+v", l)
		}
		var one store.Listing // the list reads no other timer
		c.CallService(&one, "delayctl.timers", `{"key":"k7"}`)
		if len(one.Timers) != 1 || one.Timers[0].Key != "k7" || one.Scanned != 1 {
			t.Errorf("k7 lists %+v", one)
		}
		var dry, done, again store.BulkResult
		c.CallService(&dry, "delayctl.shift.orders", `{"by":"5m","key":"k1*","dry_run":true}`)
		shift := fmt.Sprintf(`{"by":"5m","key":"k1*","up_to":%d}`, dry.UpTo)
		c.CallService(&done, "delayctl.shift.orders", shift)
		c.CallService(&again, "delayctl.shift.orders", shift)
		if dry.Matched != 11 || done.Outcomes[timer.Moved] != 11 || again.Matched != 0 {
			t.Errorf("the shift returns %+v %+v, and the repeated shift %+v", dry, done, again)
		}
		done = store.BulkResult{}
		c.CallService(&done, "delayctl.cancel-all.orders", `{"key":"k2*"}`)
		if done.Outcomes[timer.Cancelled] != 11 || done.Next != 0 {
			t.Errorf("the cancel returns %+v", done)
		}
		time.Sleep(time.Until(start.Add(15*time.Minute - 1)))
		synctest.Wait()
		orders := func() (got []harness.Arrival) {
			for _, targets := range in {
				got = append(got, targets.Arrivals()...)
			}
			return got
		}
		harness.CheckBodies(t, orders(), "bare other payment x×8")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		harness.CheckBodies(t, orders(), "bare other payment x×19")
		c.CheckNoDead()
	})
}

// operatorConfig returns the configuration of a broker that also answers the requests of operators.
func operatorConfig(s *natstest.Server, cfg broker.Config) broker.Config {
	of := cfg
	cfg.Calls = operation.Calls(func(context.Context) (*inspect.Inspector, error) { return inspect.Open(s.Connect(), of) })
	return cfg
}

// TestControlCalls: any NATS client can request the lanes, the place of a message, and the forecast, with and without a
// stream of timers.
func TestControlCalls(t *testing.T) {
	t.Parallel()
	for name, timers := range map[string]bool{"with timers": true, "without": false} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			cfg.Timers = timers
			c := harness.StartBroker(t, s, operatorConfig(s, cfg)).NewClient()
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
					t.Errorf("the lane of 1h is %+v", l)
				}
			}
			var at inspect.Whereabouts
			if code := c.CallService(&at, "delayctl.where.DELAY_1m-1", ""); code != "" || !at.Found || !at.Due.Equal(due) {
				t.Errorf("where: %s, %+v, want due %s", code, at, due)
			}
			if code := c.CallService(&at, "delayctl.where.DELAY_1m-7", ""); code != "" || at.Found {
				t.Errorf("where, for a missing message: %s, %+v", code, at)
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

// TestListAfterElection: a leader that was just elected does not know its followers yet. A list waits until the leader
// knows its followers.
func TestListAfterElection(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimerConfig(t))
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

// TestFullStreamOfTimers: the stream of timers is full. The service, package store and the Go client report that the
// stream is full. A request for a schedule gets the server's own answer.
func TestFullStreamOfTimers(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]func(*jetstream.StreamConfig){
		"bytes":    func(cfg *jetstream.StreamConfig) { cfg.MaxBytes = 100 },
		"messages": func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = 1 },
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			harness.StartBroker(t, s, harness.ScheduleConfig(t))
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
			var got any
			if code := c.CallService(&got, "delayctl.timer.set.new.orders.x", "new", "Delay-For", "1h"); code != "507" {
				t.Errorf("a set is answered %q %v, want 507", code, got)
			}
			refused := (*change.Error)(nil)
			if a, err := c.Timers.Do(t.Context(), harness.NewChange(timer.Cancel, "once", 0)); !errors.As(err, &refused) ||
				refused.Code != 507 || !strings.Contains(refused.Sentence, "maximum "+name+" exceeded") {
				t.Errorf("the cancel returns %+v, %v; want a refusal with the code 507", a, err)
			}
			if err := asks.Pause(t.Context(), "k", "orders.x"); !errors.Is(err, asking.ErrFull) {
				t.Errorf("the client's pause returns %v, want %v", err, asking.ErrFull)
			}
			soon := harness.AtExpression(time.Now().Add(time.Hour))
			if _, code := c.Schedule("schedules.orders.a", "orders.x", soon, "hi"); code != 10077 {
				t.Errorf("a schedule is answered %d, want 10077", code)
			}
			checkLast(c.Client, "delaytimer.k.orders.x", last)
		})
	}
}
