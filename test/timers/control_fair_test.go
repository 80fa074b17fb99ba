package timers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// sendTogether sends requests concurrently. The returned function counts the answers: a refusal by its code, an answer
// about one timer by its outcome, and a list as "page".
func sendTogether(c *harness.Client, n int, subject, body string) (answers func() map[string]int) {
	c.T.Helper()
	reply := c.NC.NewInbox()
	in := c.Subscribe(reply)
	for range n {
		m := harness.NewMsg(subject, body)
		m.Reply = reply
		natstest.NoError(c.T, c.NC.PublishMsg(m))
	}
	natstest.Flush(c.T, c.NC)
	return func() map[string]int {
		synctest.Wait()
		all := make(map[string]int)
		for _, a := range in.Arrivals() {
			var said change.Answer
			_ = json.Unmarshal([]byte(a.Body), &said)
			what := a.Header.Get(micro.ErrorCodeHeader) + string(said.Outcome)
			if what == "" {
				what = "page"
			}
			all[what]++
		}
		return all
	}
}

// TestFutureGenerationIsUnknown: for a generation above the last sequence of the stream, the outcome is immediately
// "unknown". Each such request causes at most three requests to JetStream.
func TestFutureGenerationIsUnknown(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		var asked atomic.Int64
		cfg.APIPrefix = natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool {
			asked.Add(1)
			return false
		})
		c := harness.StartBroker(t, s, cfg).NewClient()
		c.Publish("delaytimer.k.att.x", "k", "Delay-For", "1h")
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "1h").Sequence
		synctest.Wait()
		before, began := asked.Load(), time.Now()
		const many = 300
		for _, verb := range []string{"cancel", "move"} {
			body := `{"generation":999999999}`
			if verb == "move" {
				body = `{"generation":999999999,"by":"5m"}`
			}
			if got := sendTogether(c, many, "delayctl.timer."+verb+".k.att.x", body)(); got["unknown"] != many {
				t.Errorf("the answer to %s of a future generation is %v", verb, got)
			}
		}
		if n := asked.Load() - before; n > 2*3*many {
			t.Errorf("%d requests caused %d requests to JetStream, want at most three for each", 2*many, n)
		}
		var got change.Answer
		c.CallService(&got, "delayctl.timer.cancel.k.orders.x", "")
		if took := time.Since(began); got.Outcome != timer.Cancelled || got.Generation != g || took > 0 {
			t.Errorf("the answer to another tenant's cancel is %+v after %s", got, took)
		}
	})
}

// TestTenantsTakeTurns: JetStream does not answer the reads for one tenant's requests, about one timer or many. The
// service answers another tenant immediately. It refuses all requests of the first tenant within five seconds.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.Schedules = message.ParseScheduleRules("schedules.>=>", nil)
		var silent atomic.Bool
		cfg.APIPrefix = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			return silent.Load() && strings.Contains(string(m.Data), ".att")
		})
		c := harness.StartBroker(t, s, cfg).NewClient()
		for _, target := range []string{"att.x", "orders.x"} {
			c.Publish("delaytimer.k."+target, "k", "Delay-For", "1h")
		}
		synctest.Wait()
		silent.Store(true)
		begun := time.Now()
		const many = 500
		gets := sendTogether(c, many, "delayctl.timer.get.k.att.x", "")
		schedules := sendTogether(c, many, "delayctl.timer.get._schedule.schedules.att.x", "")
		lists := sendTogether(c, many, "delayctl.timers.att", "")
		var page store.Listing
		c.CallService(&page, "delayctl.timers.orders", "")
		var done store.BulkResult
		c.CallService(&done, "delayctl.cancel-all.orders", `{"dry_run":true}`)
		var got change.Answer
		c.CallService(&got, "delayctl.timer.cancel.k.orders.x", "")
		var schedule change.Answer
		c.CallService(&schedule, "delayctl.timer.get._schedule.schedules.orders.x", "")
		took := time.Since(begun)
		if schedule.Outcome == "" {
			t.Errorf("the answer about another tenant's schedule is %+v", schedule)
		}
		if took > 0 || len(page.Timers) != 1 || done.Matched != 1 || got.Outcome != timer.Cancelled {
			t.Errorf("the answers to another tenant are %+v, %+v, %+v after %s", page, done, got, took)
		}
		time.Sleep(5 * time.Second)
		if got := gets(); got["429"] == 0 || got["429"]+got["503"] != many {
			t.Errorf("the answers to %d requests about one timer are %v", many, got)
		}
		if got := schedules(); got["429"] == 0 || got["429"]+got["503"] != many {
			t.Errorf("the answers to %d requests about one schedule are %v", many, got)
		}
		if got := lists(); got["429"] != many-1 || got["503"] != 1 {
			t.Errorf("the answers to %d lists are %v, want 503 for one, and 429 for the others", many, got)
		}
	})
}

// TestManyConcurrentCancels: hundreds of requests cancel timers concurrently. Each request gets the outcome. If the
// queue is full, the service refuses further requests as busy.
func TestManyConcurrentCancels(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		silent := harness.Mute(t, s, &cfg, "STREAM.MSG.GET.")
		c := harness.StartBroker(t, s, cfg).NewClient()
		const clients = 500
		answers := c.Subscribe("_INBOX.all.*")
		for i := range clients {
			c.Publish(fmt.Sprintf("delaytimer.k%d.orders.x", i), "k", "Delay-For", "1h")
		}
		for i := range clients {
			subject, reply := fmt.Sprintf("delayctl.timer.cancel.k%d.orders.x", i), fmt.Sprint("_INBOX.all.", i)
			natstest.NoError(t, c.NC.PublishRequest(subject, reply, nil))
		}
		natstest.Flush(t, c.NC)
		synctest.Wait()
		cancelled := 0
		for _, a := range answers.Arrivals() {
			if strings.Contains(a.Body, `"cancelled"`) {
				cancelled++
			}
		}
		if cancelled != clients {
			t.Errorf("%d of %d are cancelled", cancelled, clients)
		}

		silent.Store(true)
		const waiting, working = 2048, 48
		var all []func() map[string]int
		for range 6 { // the service would drop requests of a larger group
			all = append(all, sendTogether(c, 400, "delayctl.timer.cancel.k.orders.x", ""))
			synctest.Wait()
		}
		refused := 0
		for _, answers := range all {
			refused += answers()["429"]
		}
		if want := 6*400 - waiting - working; refused != want {
			t.Errorf("%d are refused immediately, want %d", refused, want)
		}
		silent.Store(false)
	})
}

// TestOneFilterForEachScan: each consumer that a list creates has one filter subject. Lists have the timers of a target
// and below it, sorted by generation, on pages of any length.
func TestOneFilterForEachScan(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		var mu sync.Mutex
		var scans []string
		natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			if strings.HasPrefix(question, "CONSUMER.CREATE.DELAY_TIMERS") {
				var asked struct {
					Config jetstream.ConsumerConfig `json:"config"`
				}
				_ = json.Unmarshal(m.Data, &asked)
				mu.Lock()
				defer mu.Unlock()
				scans = append(scans, strings.Join(asked.Config.FilterSubjects, ","))
			}
			return false
		})
		cfg := harness.TimerConfig(t)
		cfg.APIPrefix = natstest.ProxyAPI
		c := harness.StartBroker(t, s, cfg).NewClient()
		var want []string
		for i := range 30 {
			target := []string{"orders", "orders.x", "orders.x.y", "ordersx"}[i*7%10%4]
			c.Publish(fmt.Sprintf("delaytimer.k%d.%s", i, target), "k", "Delay-For", "1h")
			if target != "ordersx" {
				want = append(want, fmt.Sprint("k", i))
			}
		}
		synctest.Wait()
		mu.Lock()
		scans = nil
		mu.Unlock()
		for limit := 1; limit <= 40; limit++ {
			var got []string
			for page := (store.Listing{Next: 1}); page.Next > 0; {
				after, upTo := page.Next, page.UpTo
				if upTo == 0 {
					after = 0
				}
				page = store.Listing{}
				body := fmt.Sprintf(`{"limit":%d,"after":%d,"up_to":%d}`, limit, after, upTo)
				if code := c.CallService(&page, "delayctl.timers.orders", body); code != "" ||
					len(page.Timers) > limit {
					t.Fatalf("%s is answered %s with %d timers", body, code, len(page.Timers))
				}
				for _, r := range page.Timers {
					got = append(got, r.Key)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d list %v, want %v", limit, got, want)
			}
		}
		var got []string
		late, cancel := context.WithTimeout(context.Background(), time.Millisecond) // each scan ends at its first entry
		defer cancel()
		for page := (store.Page{}); ; {
			l, err := harness.NewTimerClient(c).Timers.List(late, store.Filter{Targets: []string{"orders", "orders.>"}}, page)
			natstest.NoError(t, err)
			for _, r := range l.Timers {
				got = append(got, r.Key)
			}
			if page.Start, page.UpTo = l.Next, l.UpTo; l.Next == 0 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the pages of scans that end early list %v, want %v", got, want)
		}
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(scans)
		if got := fmt.Sprint(slices.Compact(scans)); got != "[delaytimer.*.orders delaytimer.*.orders.>]" {
			t.Errorf("the consumers have the filters %s", got)
		}
	})
}

// TestOperationsOfVerbs: each verb makes the number of reads and publishes that package store documents.
func TestOperationsOfVerbs(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimerConfig(t)).Stop()
		c := harness.NewTimerClient(harness.NewClient(t, s))
		var reads atomic.Int64
		publishes := 0
		c.Timers.API.API = natstest.Proxy(t, s, func(string, *nats.Msg) bool { reads.Add(1); return false })
		publish := c.Timers.Publish
		c.Timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
			publishes++
			return publish(ctx, m)
		}
		set := func() uint64 { return c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "1h").Sequence }
		known := func(verb timer.Verb) change.Change { return harness.NewChange(verb, "k", set()) }
		whatever := func(verb timer.Verb) change.Change {
			set()
			w := harness.NewChange(verb, "k", 0)
			if verb == timer.Move {
				w.By = time.Minute
			}
			return w
		}
		for _, tt := range []struct {
			name             string
			wish             func() change.Change
			want             timer.Outcome
			reads, publishes int
		}{
			{"get", func() change.Change { return whatever(timer.Get) }, timer.Pending, 1, 0},
			{"get nothing", func() change.Change { return harness.NewChange(timer.Get, "none", 0) }, timer.NotFound, 3, 0},
			{"cancel a generation", func() change.Change { return known(timer.Cancel) }, timer.Cancelled, 0, 1},
			{"cancel whatever", func() change.Change { return whatever(timer.Cancel) }, timer.Cancelled, 1, 1},
			{"cancel again", func() change.Change { return harness.NewChange(timer.Cancel, "k", 0) }, timer.Cancelled, 1, 0},
			{"cancel another", func() change.Change {
				set()
				return harness.NewChange(timer.Cancel, "k", 1)
			}, timer.Conflict, 2, 1},
			{"cancel the future", func() change.Change {
				return harness.NewChange(timer.Cancel, "k", 1<<40)
			}, timer.Unknown, 3, 1},
			// One read requests the leader's time. The fire within 100 ms afterwards uses the same time.
			{"move", func() change.Change { return whatever(timer.Move) }, timer.Moved, 3, 1},
			{"fire", func() change.Change { return whatever(timer.Fire) }, timer.Fired, 1, 1},
		} {
			w := tt.wish()
			reads.Store(0)
			publishes = 0
			c.Check(w, tt.want, 0)
			if n := int(reads.Load()); n != tt.reads || publishes != tt.publishes {
				t.Errorf("%s takes %d reads and %d publishes, want %d and %d", tt.name, n, publishes, tt.reads, tt.publishes)
			}
		}
	})
}
