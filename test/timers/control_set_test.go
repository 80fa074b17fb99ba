package timers

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

const setRequest = "delayctl.timer.set.k.orders.x"

// TestSetByRequest: a request sets a timer with its own body and headers, as a publish on the timer's subject does, and
// gets the generation and the due time. A repeated request with its word and its condition is carried out once.
func TestSetByRequest(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in, start := c.Subscribe("orders.>"), time.Now()
		set := func(want timer.Outcome, body string, headers ...string) (a change.Answer) {
			t.Helper()
			if code := c.CallService(&a, setRequest, body, headers...); code != "" || a.Outcome != want {
				t.Errorf("set %q %q is answered %q %+v, want %s", body, headers, code, a, want)
			}
			return a
		}
		first := set(timer.Pending, "one", "Delay-For", "10m", "X-Mine", "1", "Nats-Expected-Last-Subject-Sequence", "0",
			"Delay-Word", "w1")
		again := set(timer.Pending, "one", "Delay-For", "10m", "Nats-Expected-Last-Subject-Sequence", "0", "Delay-Word", "w1")
		if !first.Due.Equal(start.Add(10*time.Minute)) || again.Generation != first.Generation {
			t.Errorf("the request is answered %+v, and repeated %+v", first, again)
		}
		set(timer.Conflict, "two", "Delay-For", "1m", "Nats-Expected-Last-Subject-Sequence", "0", "Delay-Word", "w2")
		is := strconv.FormatUint(first.Generation, 10)
		second := set(timer.Pending, "two", "Delay-For", "20m", "Nats-Expected-Last-Subject-Sequence", is, "X-Mine", "2")
		third := set(timer.Pending, "{}", "Delay-Every", "10m", "delay-rounds", "2", "X-Mine", "3")
		if third.Generation <= second.Generation {
			t.Errorf("the sets have the generations %d and %d", second.Generation, third.Generation)
		}
		time.Sleep(30 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "{}×2")
		for _, a := range in.Arrivals() {
			if a.Header.Get("X-Mine") != "3" || a.Header.Get("Delay-Word") != "" {
				t.Errorf("the message has the headers %v", a.Header)
			}
		}
		c.CheckNoDead()
	})
}

// TestSetByRequestRefused: a bad set gets the reason, and the code of the dead letter that its publish would become. It
// does not replace the pending timer.
func TestSetByRequestRefused(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence
		for _, tt := range []struct {
			subject, code, problem, hint string
			headers                      []string
		}{
			{"k.orders.x", "400", "bad_timer", "neither sets nor cancels", nil},
			{"k.orders.x", "400", "bad_time", "30x", []string{"Delay-For", "30x"}},
			{"k.orders.x", "400", "too_far", "DELAY_MAX_DELAY", []string{"Delay-For", "9000d"}},
			{"k.orders.x", "400", "time_twice", "exclude", []string{"Delay-For", "1m", "Delay-Until", "1999999999"}},
			{"k.orders.x", "400", "time_twice", "cancels", []string{"Delay-For", "1m", "Delay-Cancel", "x"}},
			{"k.orders.x", "400", "time_twice", "2 times", []string{"Delay-For", "1m", "delay-for", "1m"}},
			{"k.orders.x", "400", "bad_option", "Delay-Evrey", []string{"Delay-For", "1m", "Delay-Evrey", "1h"}},
			{"k.orders.x", "400", "bad_option", "Delay-Deliver", []string{"Delay-For", "1m", "Delay-Deliver", "post"}},
			{"k.orders.x", "400", "bad_timer", "Delay-Cron", []string{"Delay-Cron", "0 0 30 2 *"}},
			{"k.orders.x", "400", "bad_target", "Delay-Target", []string{"Delay-For", "1m", "Delay-Target", "payments.x"}},
			{"k.orders.x", "400", "bad_headers", "64 headers", append([]string{"Delay-For", "1m"},
				slices.Repeat([]string{"X", "x"}, 65)...)},
			{"k.orders.x", "400", "", "Nats-Rollup", []string{"Delay-For", "1m", "Nats-Rollup", "all"}},
			{"k.orders.x", "400", "", "Nats-Trace-Dest", []string{"Delay-For", "1m", "Nats-Trace-Dest", "payments.x"}},
			{"k.orders.x", "400", "", "Nats-TTL", []string{"Delay-For", "1m", "Nats-TTL", "1s"}},
			{"k.orders.x", "400", "", "Nats-Msg-Id", []string{"Delay-For", "1m", "Nats-Msg-Id", "1"}},
			{"k.orders.x", "400", "", "the sequence",
				[]string{"Delay-For", "1m", "Nats-Expected-Last-Subject-Sequence", "-1"}},
			{"k.orders.x", "400", "", "word", []string{"Delay-For", "1m", "Delay-Word", "two words"}},
			{"k.orders.x", "400", "", "the broker writes", []string{"Delay-For", "1m", "Delay-Over", "1 delivered"}},
			{"k.delay.x", "400", "bad_target", "delay", []string{"Delay-For", "1m"}},
			{"_k.orders.x", "400", "bad_timer", "_", []string{"Delay-For", "1m"}},
			{"_schedule.orders.x", "400", "bad_timer", "_", []string{"Delay-For", "1m", "Delay-Target", "payments.x"}},
			{"k.orders.x", "413", "", "at most 8192", []string{"Delay-For", "1m", "X", strings.Repeat("x", 9000)}},
		} {
			m := harness.NewMsg("delayctl.timer.set."+tt.subject, "evil", tt.headers...)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			answer, err := c.NC.RequestMsgWithContext(ctx, m)
			cancel()
			natstest.NoError(t, err)
			var body struct{ Message, Problem string }
			natstest.NoError(t, json.Unmarshal(answer.Data, &body))
			if answer.Header.Get(micro.ErrorCodeHeader) != tt.code || body.Problem != tt.problem ||
				!strings.Contains(body.Message, tt.hint) {
				t.Errorf("%s %.80q is answered %s, want %s %q with %q", tt.subject, tt.headers, answer.Data, tt.code, tt.problem,
					tt.hint)
			}
		}
		checkLast(c, "delaytimer.k.orders.x", g)
		c.CheckNoDead()
	})
}

// TestCancelledBefore: the answer to a cancel says whether another request had cancelled the timer before. A number may
// be a JSON string.
func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = time.Hour
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence
		generation := strconv.FormatUint(g, 10)
		one := `{"generation":` + generation + `,"word":"`
		for _, tt := range []struct {
			body    string
			already bool
		}{
			{one + `mine"}`, false}, {one + `mine"}`, false}, {`{"word":"mine","generation":"` + generation + `"}`, false},
			{one + `other"}`, true}, {`{"word":"mine"}`, false}, {`{"word":"b"}`, true}, {"", true},
		} {
			var got change.Answer
			code := c.CallService(&got, "delayctl.timer.cancel.k.orders.x", tt.body)
			if code != "" || got.Outcome != timer.Cancelled || got.Generation != g || got.Already != tt.already {
				t.Errorf("cancel %s is answered %q %+v, want already %t", tt.body, code, got, tt.already)
			}
		}
	})
}
