package timers

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestControlServiceOfSeries checks the requests about a series, and the deliveries. An extra firing and a pause do not
// change the times of the following rounds.
func TestControlServiceOfSeries(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = time.Hour
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))) }
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Owner", "reports").Sequence
		c.Publish("delaytimer.once.orders.x", "once", "Delay-For", "1h")
		ask := func(verb, body string, want timer.Outcome, due time.Duration) (got change.Answer) {
			t.Helper()
			code := c.CallService(&got, "delayctl.timer."+verb+".k.orders.x", body)
			if code != "" || got.Outcome != want || due > 0 && !got.Due.Equal(start.Add(due)) {
				t.Errorf("%s %s returns %q %+v, want %s, due after %s", verb, body, code, got, want, due)
			}
			return got
		}
		series := fmt.Sprintf(`{"series":%d}`, g)
		at(25 * time.Minute) // two rounds have fired
		got := ask("get", "", timer.Pending, 30*time.Minute)
		if r := got.Recurring; r == nil || r.Round != 3 || r.Series != g || r.Table != "every 10m" || r.Set != "reports" ||
			!r.Planned.Equal(start.Add(30*time.Minute)) {
			t.Errorf("get returns %+v", r)
		}
		ask("fire", series, timer.Fired, 0)
		ask("pause", fmt.Sprintf(`{"series":%d}`, g+1), timer.Conflict, 0)
		ask("pause", series, timer.Paused, 0)
		ask("pause", "", timer.Paused, 0)
		at(65 * time.Minute)
		if got := ask("get", "", timer.Paused, 0); got.Recurring == nil || !got.Recurring.Paused {
			t.Errorf("get returns %+v", got.Recurring)
		}
		checkListsSeries(t, c)
		ask("resume", `{"word":"w"}`, timer.Pending, 0)
		at(75 * time.Minute) // a missed round has fired at 65m, and the next round at 70m
		ask("retime", `{"every":"1h","at":"`+start.Add(80*time.Minute).Format(time.RFC3339)+`","rounds":7}`,
			timer.Moved, 80*time.Minute)
		at(145 * time.Minute)
		ask("cancel", series, timer.Cancelled, 0)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		var came []int
		for _, a := range in.Arrivals() {
			if a.Body == "body" {
				came = append(came, int(a.At.Sub(start)/time.Minute))
			}
		}
		if want := "[10 20 25 65 70 80 140]"; fmt.Sprint(came) != want {
			t.Errorf("%v arrived, want %s", came, want)
		}
		c.CheckNoDead()
	})
}

// checkListsSeries checks the number of timers in lists with several filters.
func checkListsSeries(t *testing.T, c *harness.Client) {
	t.Helper()
	for _, tt := range []struct {
		body string
		want int
	}{
		{`{"recurring":true}`, 1}, {`{"set":"reports"}`, 1}, {`{"set":"bills"}`, 0}, {`{"state":"paused"}`, 1},
		{`{"state":"pending","recurring":true}`, 0}, {`{"key":"k"}`, 1},
	} {
		var l store.Listing
		if code := c.CallService(&l, "delayctl.timers.orders", tt.body); code != "" || len(l.Timers) != tt.want {
			text, _ := json.Marshal(l)
			t.Errorf("%s lists %q %s, want %d", tt.body, code, text, tt.want)
		}
	}
}

// TestRecursDuringFirings: a list takes longer than the interval of the rounds, and still contains each
// series once.
func TestRecursDuringFirings(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewTimerClient(plain)
		const n = store.MaxLimit + 20 // more timers than a page has
		for i := range n {
			c.Publish(fmt.Sprintf("delaytimer.k%d.orders.x", i), "x", "Delay-Every", "1h")
		}
		rows := make(map[string]int)
		for row, err := range c.Timers.ListRecurring(t.Context(), store.Filter{}) {
			natstest.NoError(t, err)
			if rows[row.Key]++; len(rows) == store.MaxLimit {
				time.Sleep(90 * time.Minute) // each series fires a round
			}
		}
		if len(rows) != n {
			t.Errorf("%d of %d are listed", len(rows), n)
		}
		for key, times := range rows {
			if times != 1 {
				t.Errorf("%s is listed %d times", key, times)
			}
		}
	})
}

// TestNoBrokerEntryWithoutSecret: a client without the brokers' secret writes no sealed entry. Its entry would replace
// the series and be invalid.
func TestNoBrokerEntryWithoutSecret(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewTimerClient(plain)
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m").Sequence
		for _, keys := range []*message.Keys{nil, {}} {
			c.Timers.Policy.Keys = keys
			refused := (*change.Error)(nil)
			if a, err := c.Timers.Do(t.Context(), harness.NewChange(timer.Pause, "k", 0)); !errors.As(err, &refused) {
				t.Errorf("got %+v, %v, want a refusal", a, err)
			}
		}
		checkLast(c.Client, "delaytimer.k.orders.x", g)
	})
}

// TestControlRefusalsOfSeries: each bad request is refused, and changes nothing.
func TestControlRefusalsOfSeries(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		last := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m").Sequence
		once := c.Publish("delaytimer.once.orders.x", "once", "Delay-For", "1h").Sequence
		for _, tt := range []struct{ subject, body string }{
			{"timer.retime.k.orders.x", ""},
			{"timer.retime.k.orders.x", `{"every":"10m","cron":"@daily"}`},
			{"timer.retime.k.orders.x", `{"cron":"0 0 30 2 *"}`},
			{"timer.retime.k.orders.x", `{"every":"10m","by":"5m"}`},
			{"timer.retime.k.orders.x", `{"every":"10m","in":"soon"}`},
			{"timer.retime.k.orders.x", `{"every":"10m","last":"1999-01-01T00:00:00Z"}`},
			{"timer.pause.k.orders.x", `{"every":"10m"}`},
			{"timer.pause.k.orders.x", `{"in":"10m"}`},
			{"timer.cancel.k.orders.x", fmt.Sprintf(`{"series":%d,"generation":%d}`, last, last)},
			{"timer.pause.once.orders.x", ""},
			{"timer.resume.once.orders.x", ""},
			{"timer.retime.once.orders.x", `{"every":"10m"}`},
			{"timers.orders", `{"series":1}`},
			{"timers.orders", `{"every":"10m"}`},
			{"cancel-all.orders", `{"set":"reports"}`},
			{"cancel-all.orders", `{"recurring":true}`},
		} {
			checkRefused(c, tt.subject, tt.body)
		}
		checkLast(c, "delaytimer.k.orders.x", last)
		checkLast(c, "delaytimer.once.orders.x", once)
		var got change.Answer
		const retime, everyHour = "delayctl.timer.retime.k.orders.x", `{"every":"1h"}`
		if code := c.CallService(&got, retime, everyHour, "Delay-For", "soon"); code != "400" {
			t.Errorf("retime with a header that is no delay returns %q", code)
		}
		want := time.Now().Add(5 * time.Minute)
		if code := c.CallService(&got, retime, everyHour, "Delay-For", "5m"); code != "" || !got.Due.Equal(want) {
			t.Errorf("retime with a header for the first round returns %q, %+v; want due %s", code, got, want)
		}
	})
}
