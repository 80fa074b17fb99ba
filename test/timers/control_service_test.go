package timers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// checkRefused expects the control service to refuse a bad request.
func checkRefused(c *harness.Client, subject, body string) {
	c.T.Helper()
	var got any
	if code := c.CallService(&got, "delayctl."+subject, body); code != "400" {
		c.T.Errorf("%s %s is answered %q %v, want 400", subject, body, code, got)
	}
}

// checkLast expects the last entry of a timer's subject to be this one.
func checkLast(c *harness.Client, subject string, generation uint64) {
	c.T.Helper()
	if m := c.LastEntry(subject); m == nil || m.Sequence != generation {
		c.T.Errorf("the last entry of %s is %+v, want generation %d", subject, m, generation)
	}
}

// TestControlService checks the service's answers to get, cancel, move and fire, and the deliveries.
func TestControlService(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = time.Hour
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		generations := make(map[string]uint64)
		for _, key := range []string{"a", "b", "c", "d"} {
			generations[key] = c.Publish("delaytimer."+key+".orders.x", key, "Delay-For", "10m").Sequence
		}
		a, b := generations["a"], generations["b"]
		for _, tt := range []struct {
			subject, body string
			headers       []string
			outcome       timer.Outcome
			generation    uint64 // zero for any generation
			due           time.Duration
		}{
			{subject: "get.none.orders.x", outcome: timer.NotFound},
			{subject: "get.a.orders.x", outcome: timer.Pending, generation: a, due: 10 * time.Minute},
			{subject: "cancel.a.orders.x", body: fmt.Sprintf(`{"generation":%d}`, b), outcome: timer.NotFound},
			{subject: "cancel.a.orders.x", body: fmt.Sprintf(`{"generation":%d}`, a), outcome: timer.Cancelled, generation: a},
			{subject: "cancel.a.orders.x", outcome: timer.Cancelled, generation: a},
			{subject: "get.a.orders.x", outcome: timer.Cancelled, generation: a},
			{subject: "move.b.orders.x", body: `{"in":"20m","word":"w1"}`, outcome: timer.Moved, due: 20 * time.Minute},
			{subject: "move.b.orders.x", body: `{"in":"30m","word":"w1"}`, outcome: timer.Moved, due: 20 * time.Minute},
			{subject: "move.b.orders.x", body: `{"by":"-5m"}`, outcome: timer.Moved, due: 15 * time.Minute},
			{subject: "move.b.orders.x", headers: []string{"Delay-For", "25m"}, outcome: timer.Moved, due: 25 * time.Minute},
			{subject: "cancel.b.orders.x", body: fmt.Sprintf(`{"generation":%d}`, b), outcome: timer.Conflict},
			{subject: "fire.c.orders.x", outcome: timer.Fired},
		} {
			var got change.Answer
			code := c.CallService(&got, "delayctl.timer."+tt.subject, tt.body, tt.headers...)
			if code != "" || got.Outcome != tt.outcome || tt.generation > 0 && got.Generation != tt.generation ||
				tt.due > 0 && !got.Due.Equal(start.Add(tt.due)) || !got.At.Equal(time.Now()) {
				t.Errorf("%s %s returns %q %+v, want %s %d", tt.subject, tt.body, code, got, tt.outcome, tt.generation)
			}
		}
		time.Sleep(time.Second)
		var got change.Answer
		c.CallService(&got, "delayctl.timer.cancel.c.orders.x", "")
		if got.Outcome != timer.TooLate || got.Delivery != entry.Delivered {
			t.Errorf("the cancel of a fired timer returns %+v", got)
		}
		time.Sleep(30 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "b c d")
		c.CheckNoDead()
	})
}

// TestControlRefusals: each bad request is refused with the code 400, and changes nothing.
func TestControlRefusals(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence
		for _, tt := range []struct{ subject, body string }{
			{"timer.cancel._k.orders.x", ""},
			{"timer.cancel.k.orders.*", ""},
			{"timer.cancel.k.delay.x", ""},
			{"timer.cancel.k.orders.x", `{"generations":1}`},
			{"timer.cancel.k.orders.x", `{"all":true}`}, // would cancel the timers of other tenants
			{"timer.cancel.k.orders.x", `{"target":"payments.x"}`},
			{"cancel-all.orders", `{"prefix":"payments"}`},
			{"timer.cancel.k.orders.x", `{}{}`},
			{"timer.cancel.k.orders.x", `{}}`},
			{"timer.cancel.k.orders.x", `[]`},
			{"timer.cancel.k.orders.x", `{"generation":-1}`},
			{"timer.cancel.k.orders.x", `{"generation":1e30}`},
			{"timer.cancel.k.orders.x", strings.Repeat(`{"generation":`, 500)},
			{"timer.cancel.k.$JS.API.STREAM.PURGE.DELAY_TIMERS", ""},
			{"timer.get.k.orders.>", ""},
			{"timer.get." + strings.Repeat("k", 129) + ".orders.x", ""},
			{"timer.move.k.orders.x", `{"at":"10000-01-01T00:00:00Z"}`},
			{"timer.move.k.orders.x", `{"by":"99999999999h"}`},
			{"timer.move.k.orders.x", `{"by":"2000000h"}`},
			{"timer.cancel.k.orders.x", `{"in":"5m"}`},
			{"timer.cancel.k.orders.x", `{"word":"two words"}`},
			{"timer.cancel.k.orders.x", `{"dry_run":true}`}, // a request about one timer has no dry run
			{"timer.move.k.orders.x", ""},
			{"timer.move.k.orders.x", `{"in":"5m","by":"5m"}`},
			{"timer.move.k.orders.x", `{"in":"soon"}`},
			{"timer.move.k.orders.x", `{"in":"5000d"}`},
			{"timers.orders", `{"target":"payments.>"}`},
			{"timers.orders", `{"target":"ordersx"}`},
			{"timers.*", ""},
			{"timers", `{"state":"gone"}`},
			{"timers", `{"limit":100000}`},
			{"timers", `{"dry_run":true}`},
			{"cancel-all.orders", `{"dryrun":true}`},
			{"cancel-all.orders", `{"generation":1}`},
			{"cancel-all.orders", `{"state":"fired"}`},
			{"cancel-all.>", ""},
			{"shift.orders", `{"by":"5m"}`},
			{"shift.orders", `{"up_to":5}`},
			{"shift.orders", `{"by":"soon","up_to":5}`},
		} {
			checkRefused(c, tt.subject, tt.body)
		}
		checkLast(c, "delaytimer.k.orders.x", g)
	})
}

// TestServiceAnswersInboxesOnly: the service ignores a request without a reply subject, and a request whose reply
// subject is not an inbox. That also holds for the requests of "nats micro", and for acknowledgements that a tenant has
// redirected to the service's subjects.
func TestServiceAnswersInboxesOnly(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.ReplyPrefixes = []string{"_INBOX_orders"}
		log := harness.NewLineLog("DELAY_REPLY_PREFIXES")
		cfg.Log = log.Logger()
		c := harness.StartBroker(t, s, cfg).NewClient()
		set := func() uint64 { return c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "1h").Sequence }
		kept := c.Publish("delayin.20m.orders.x", "kept", "Delay-Expires", "1h")
		g := set()
		time.Sleep(2 * time.Second)
		for _, reply := range []string{
			"", "$JS.API.STREAM.PURGE." + kept.Stream, "$JS.API.STREAM.PURGE.DELAY_10m", "$JS.API.STREAM.PURGE.DELAY_TIMERS",
			"$JS.API.STREAM.DELETE.DELAY_TIMERS", "delaytimer.k.orders.x", "delaysys.armed", "orders.x", "_INBOXES.x", "_INBOX",
			"_INBOX.", "_INBOX_ordersx.y", "_INBOX_orders", "delayctl.timer.cancel.k.orders.x", "_INBOX.*",
		} {
			for _, subject := range []string{
				"delayctl.timer.cancel.k.orders.x", "delayctl.timer.fire.k.orders.x", "delayctl.cancel-all.orders",
				"delayctl.timers", "$SRV.PING", "$SRV.INFO", "$SRV.STATS.delaybroker",
			} {
				natstest.NoError(t, c.NC.PublishMsg(&nats.Msg{Subject: subject, Reply: reply}))
			}
		}
		// These publishes put an acknowledgement and a stored message on a subject of the service.
		for _, subject := range []string{"delayctl.timer.cancel.k.orders.x", "delayctl.cancel-all.orders"} {
			m := &nats.Msg{Subject: "delaytimer.other.orders.x", Reply: subject, Header: nats.Header{"Delay-For": {"1h"}}}
			natstest.NoError(t, c.NC.PublishMsg(m))
			m = &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET.DELAY_TIMERS", Reply: subject,
				Data: []byte(`{"last_by_subj":"delaytimer.other.orders.x"}`)}
			natstest.NoError(t, c.NC.PublishMsg(m))
		}
		time.Sleep(10 * time.Second)
		checkLast(c, "delaytimer.k.orders.x", g)
		if n := harness.Pending(c, "DELAY_10m"); n == 0 {
			t.Error("an answer of the service has purged the level")
		}
		if len(log.Lines()) == 0 {
			t.Error("no log line names DELAY_REPLY_PREFIXES")
		}
		own := s.Connect(nats.CustomInboxPrefix("_INBOX_orders"))
		var got change.Answer
		if code := harness.WrapConn(t, own).CallService(&got, "delayctl.timer.cancel.k.orders.x", ""); code != "" ||
			got.Outcome != timer.Cancelled {
			t.Errorf("the answer to the request with the allowed prefix is %q %+v", code, got)
		}
	})
}

// TestControlWithInstances: each request gets one answer, from any instance. "nats micro" lists all instances. A
// stopping instance answers the requests that it has received, and the other instances continue.
func TestControlWithInstances(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.Leaser = harness.Together
		first := harness.StartBroker(t, s, cfg)
		c := harness.StartBroker(t, s, cfg).NewClient()
		in := c.Subscribe("orders.>")
		const n = 200
		for i := range n {
			c.Publish(fmt.Sprintf("delaytimer.k%d.orders.x", i), "x", "Delay-For", "10m")
		}
		answers := c.Subscribe("_INBOX.mine.>")
		for i := range n {
			natstest.NoError(t, c.NC.PublishRequest(fmt.Sprintf("delayctl.timer.cancel.k%d.orders.x", i),
				fmt.Sprint("_INBOX.mine.", i), nil))
			time.Sleep(time.Millisecond)
			if i == n/2 {
				first.Stop()
			}
		}
		time.Sleep(10 * time.Second)
		got := make(map[string]int)
		for _, a := range answers.Arrivals() {
			if !strings.Contains(a.Body, `"outcome":"cancelled"`) {
				t.Errorf("a cancel is answered %s", a.Body)
			}
			got[a.Subject]++
		}
		if len(got) != n || len(answers.Arrivals()) != n {
			t.Errorf("%d requests have %d answers", n, len(answers.Arrivals()))
		}
		time.Sleep(15 * time.Minute)
		if came := in.Arrivals(); len(came) > 0 {
			t.Errorf("%d arrived that were cancelled", len(came))
		}

		harness.StartBroker(t, s, cfg)
		for _, verb := range []string{"PING", "INFO.delaybroker", "STATS.delaybroker"} {
			seen := c.Subscribe("_INBOX.all." + verb)
			natstest.NoError(t, c.NC.PublishRequest("$SRV."+verb, "_INBOX.all."+verb, nil))
			time.Sleep(time.Second)
			all := seen.Arrivals()
			if len(all) != 2 {
				t.Fatalf("%s is answered by %d, want 2", verb, len(all))
			}
			requests := 0
			for _, a := range all {
				var who struct {
					micro.Stats
					Endpoints []*micro.EndpointStats `json:"endpoints"`
				}
				if err := json.Unmarshal([]byte(a.Body), &who); err != nil || who.Name != "delaybroker" || who.ID == "" ||
					who.Version == "" || who.Metadata["instance"] == "" {
					t.Errorf("%s is answered %s: %v", verb, a.Body, err)
				}
				for _, e := range who.Endpoints {
					requests += e.NumRequests
				}
				if verb != "PING" && len(who.Endpoints) != 11 {
					t.Errorf("%s names %d endpoints, want 11", verb, len(who.Endpoints))
				}
			}
			if verb == "STATS.delaybroker" && (requests < n/4 || requests > n) {
				t.Errorf("%d requests are counted", requests)
			}
		}
	})
}
