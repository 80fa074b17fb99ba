package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func moveTo(key string, generation uint64, until time.Time) store.Change {
	w := harness.NewChange(timer.Move, key, generation)
	w.Until = until
	return w
}

// TestVerbsWithBrokerAndWithout: each outcome of each verb, and what is delivered afterwards, with the broker up and
// with it down all the time.
func TestVerbsWithBrokerAndWithout(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprint("down ", down), func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := harness.TimersOn(t)
				cfg.TimerHistory = time.Hour
				b := harness.StartBroker(t, s, cfg)
				c := harness.NewTimerClient(harness.NewClient(t, s))
				in := c.Subscribe("orders.>")
				c.Publish("delaytimer.fired.orders.x", "fired", "Delay-For", "1s")
				time.Sleep(2 * time.Second)
				if down {
					b.Stop()
				}
				begun := time.Now()
				set := func(key string, wait string) uint64 {
					return c.Publish("delaytimer."+key+".orders.x", key, "Delay-For", wait, "X-Mine", "yes").Sequence
				}
				c.Check(harness.NewChange(timer.Get, "none", 0), timer.NotFound, 0)
				c.Check(harness.NewChange(timer.Cancel, "none", 0), timer.NotFound, 0)
				c.Check(harness.NewChange(timer.Move, "none", 0), timer.NotFound, 0)
				c.Check(harness.NewChange(timer.Fire, "none", 0), timer.NotFound, 0)

				g := set("cancelled", "10m")
				a := c.Check(harness.NewChange(timer.Get, "cancelled", 0), timer.Pending, g)
				if !a.Due.Equal(begun.Add(10 * time.Minute)) {
					t.Errorf("it is due %s", a.Due)
				}
				c.Check(harness.NewChange(timer.Cancel, "cancelled", g), timer.Cancelled, g)
				time.Sleep(time.Second)
				c.Check(harness.NewChange(timer.Cancel, "cancelled", g), timer.Cancelled, g) // again
				c.Check(harness.NewChange(timer.Cancel, "cancelled", 0), timer.Cancelled, g)
				c.Check(harness.NewChange(timer.Get, "cancelled", 0), timer.Cancelled, g)
				c.Check(moveTo("cancelled", g, begun), timer.Conflict, g)
				c.Check(harness.NewChange(timer.Fire, "cancelled", 0), timer.NotFound, g)

				g = set("any", "10m")
				c.Check(harness.NewChange(timer.Cancel, "any", 0), timer.Cancelled, g)

				g = set("moved", "10m")
				until := begun.Add(20*time.Minute + 1)
				moved := c.Check(moveTo("moved", g, until), timer.Moved, 0)
				if moved.Generation <= g || !moved.Due.Equal(until) {
					t.Errorf("it is %d due %s, want above %d due %s", moved.Generation, moved.Due, g, until)
				}
				c.Check(harness.NewChange(timer.Cancel, "moved", g), timer.Conflict, moved.Generation)
				c.Check(harness.NewChange(timer.Fire, "moved", g), timer.Conflict, moved.Generation)
				by := harness.NewChange(timer.Move, "moved", 0)
				by.By = 5 * time.Minute
				until = until.Add(by.By)
				if a := c.Check(by, timer.Moved, 0); !a.Due.Equal(until) {
					t.Errorf("moved by 5m it is due %s, want %s", a.Due, until)
				}

				g = set("now", "10m")
				c.Check(harness.NewChange(timer.Fire, "now", g), timer.Fired, 0)
				c.Check(harness.NewChange(timer.Cancel, "fired", 0), timer.TooLate, 0)
				c.Check(moveTo("fired", 0, until), timer.TooLate, 0)
				c.Check(harness.NewChange(timer.Fire, "fired", 0), timer.TooLate, 0)
				if a := c.Check(harness.NewChange(timer.Get, "fired", 0), timer.Fired, 0); a.Became != entry.Delivered {
					t.Errorf("it became %q", a.Became)
				}
				if down {
					harness.StartBroker(t, s, cfg)
				}
				time.Sleep(time.Second)
				if got := harness.Bodies(in.All()); got != "fired now" {
					t.Errorf("there came %q, want fired now", got)
				}
				harness.CheckExactly(t, in, until, 2)
				if got := in.All()[2]; got.Body != "moved" || got.Header.Get("X-Mine") != "yes" ||
					got.Header.Get("Delay-Word") != "" {
					t.Errorf("there came %q %v", got.Body, got.Header)
				}
				time.Sleep(3 * time.Hour)
				if n := len(in.All()); n != 3 {
					t.Errorf("%d came, want 3", n)
				}
				c.CheckNoTimers()
				c.CheckNoDead()
			})
		})
	}
}

// lossy is a client of which some answers get lost.
func lossy(c *harness.TimerClient, lose *atomic.Int32) *harness.TimerClient {
	timers := harness.CopyTimers(c.Timers)
	timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
		reply := c.Timers.Publish(ctx, m)
		if lose.Add(-1) >= 0 {
			<-ctx.Done()
			return jsapi.Reply{Err: ctx.Err()}
		}
		return reply
	}
	return &harness.TimerClient{Client: c.Client, Timers: timers}
}

// TestLostAcknowledgements: what was stored although the answer got lost is told as what it is: cancelled, moved, fired
// or set, and not as a conflict, also when it has fired meanwhile.
func TestLostAcknowledgements(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		cfg.TimerHistory = time.Minute
		harness.StartBroker(t, s, cfg)
		plain := harness.NewTimerClient(harness.NewClient(t, s))
		in := plain.Subscribe("orders.>")
		var lose atomic.Int32
		c := lossy(plain, &lose)
		for _, generation := range []bool{true, false} {
			for verb, want := range map[timer.Verb]timer.Outcome{
				timer.Cancel: timer.Cancelled, timer.Move: timer.Moved, timer.Fire: timer.Fired,
			} {
				before := len(in.All())
				g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence
				w := harness.NewChange(verb, "k", g)
				if !generation {
					w.Generation = 0
				}
				if verb == timer.Move {
					w.For = "500ms" // it fires before anybody looks
				}
				lose.Store(1)
				a := c.Check(w, want, 0)
				if verb == timer.Cancel && a.Generation != g || verb != timer.Cancel && a.Generation <= g {
					t.Errorf("%s says generation %d of %d", verb, a.Generation, g)
				}
				time.Sleep(time.Second)
				if n := len(in.All()) - before; n != map[timer.Verb]int{timer.Move: 1, timer.Fire: 1}[verb] {
					t.Errorf("after %s there came %d", verb, n)
				}
				time.Sleep(2 * time.Minute)
			}
		}
		w := harness.NewChange(timer.Set, "absent", 0)
		w.Conditional, w.Header, w.Body = true, message.Header{"Delay-For": {"500ms"}}, []byte("set")
		lose.Store(1)
		c.Check(w, timer.Fired, 0)
		w.Header = message.Header{"Delay-For": {"10m"}}
		c.Check(w, timer.Conflict, 0) // beyond the firing
		time.Sleep(2 * time.Minute)
		lose.Store(1)
		first := c.Check(w, timer.Pending, 0)
		c.Check(w, timer.Conflict, first.Generation)
		lose.Store(1)
		w.Generation = first.Generation
		c.Check(w, timer.Pending, 0)
	})
}

// refusedAsLast is the answer to a publish that expects another last entry.
var refusedAsLast = jsapi.Reply{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Code: jsapi.CodeWrongLast, Status: 400}}

// TestRefusedByOldLeader: what a leader that was deposed refuses, the new one may have stored. It is told as what it is
// although another client has put something over it since, and it is not done twice.
func TestRefusedByOldLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, harness.TimersOn(t))
		b.Stop()
		plain := harness.NewTimerClient(harness.NewClient(t, s))
		stored := func(m *nats.Msg) {
			if m == nil {
				return
			}
			if reply := plain.Timers.Publish(t.Context(), m); reply.Outcome() != jsapi.Stored {
				t.Errorf("not stored: %v", reply.Problem())
			}
		}
		c := &harness.TimerClient{Client: plain.Client, Timers: harness.CopyTimers(plain.Timers)}
		var over func() *nats.Msg // what another client has put over it
		published := 0
		c.Timers.Publish = func(_ context.Context, m *nats.Msg) jsapi.Reply {
			if published++; published == 1 {
				stored(m)
				stored(over())
			}
			return refusedAsLast
		}
		keys := 0
		for _, known := range []bool{true, false} {
			for verb, want := range map[timer.Verb]timer.Outcome{
				timer.Cancel: timer.Cancelled, timer.Move: timer.Moved, timer.Fire: timer.Fired, timer.Set: timer.Pending,
			} {
				for _, header := range []string{"Delay-For", "Delay-Cancel"} {
					key := fmt.Sprint("k", keys)
					keys++
					subject := "delaytimer." + key + ".orders.x"
					over = func() *nats.Msg {
						m := nats.NewMsg(subject)
						m.Header.Set(header, "1h")
						return m
					}
					w := harness.NewChange(verb, key, 0)
					if verb == timer.Set {
						w.Conditional, w.Header = true, message.Header{"Delay-For": {"10m"}}
					}
					var g uint64
					if verb != timer.Set || known {
						g = plain.Publish(subject, "x", "Delay-For", "10m").Sequence
					}
					if known {
						w.Generation = g
					}
					if verb == timer.Move {
						w.By = 5 * time.Minute
					}
					published = 0
					want, generation := want, g
					if verb != timer.Cancel {
						generation = 0
					}
					a := c.Check(w, want, generation)
					if verb != timer.Cancel && a.Generation <= g {
						t.Errorf("%s under a %s: generation %d of %d", verb, header, a.Generation, g)
					}
					if published != 1 {
						t.Errorf("%s under a %s: published %d times", verb, header, published)
					}
				}
			}
		}
	})
}

// TestRefusedForGood: where one leader refuses what another shows as pending, it is asked now and then, as long as
// there is time.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t)).Stop()
		c := harness.NewTimerClient(harness.NewClient(t, s))
		c.Publish("delaytimer.k.orders.x", "x", "Delay-For", "10m")
		asked := 0
		c.Timers.Publish = func(ctx context.Context, _ *nats.Msg) jsapi.Reply {
			if asked++; asked > 1000 {
				<-ctx.Done() // or it would be asked for ever: no time passes here
			}
			return refusedAsLast
		}
		c.Check(harness.NewChange(timer.Cancel, "k", 0), timer.Unknown, 0)
		if asked < 50 || asked > 102 {
			t.Errorf("it was asked %d times in five seconds, want a try each 50 ms", asked)
		}
	})
}

// TestVerdictBehindAnother: what became of a generation is told although a client that expected nothing has put
// something over its firing, or over its cancel.
func TestVerdictBehindAnother(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		cfg.TimerHistory = time.Hour
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewTimerClient(harness.NewClient(t, s))
		c.Subscribe("orders.>")
		set := func(key string) uint64 {
			return c.Publish("delaytimer."+key+".orders.x", key, "Delay-For", "1s").Sequence
		}
		over := set("over")
		time.Sleep(2 * time.Second)
		b.Stop()
		fired, cancelled := set("fired"), set("cancelled")
		c.Fire("delaytimer.fired.orders.x", "ghost")
		c.Check(harness.NewChange(timer.Cancel, "cancelled", cancelled), timer.Cancelled, cancelled)
		for _, key := range []string{"over", "fired", "cancelled"} {
			set(key)
			set(key)
		}
		last := set("other")
		c.Check(harness.NewChange(timer.Cancel, "other", last-1), timer.Conflict, last)
		c.Check(harness.NewChange(timer.Cancel, "over", over), timer.TooLate, over)
		c.Check(harness.NewChange(timer.Cancel, "fired", fired), timer.TooLate, fired)
		c.Check(moveTo("fired", fired, time.Now()), timer.TooLate, fired)
		c.Check(harness.NewChange(timer.Fire, "fired", fired), timer.TooLate, fired)
		c.Check(harness.NewChange(timer.Cancel, "cancelled", cancelled), timer.Cancelled, cancelled)
		c.Check(moveTo("cancelled", cancelled, time.Now()), timer.Conflict, cancelled)
	})
}

// TestSilenceIsUnknown: where nothing tells any more whether a request came before what stands there, the answer is
// unknown, and where it was refused it is an error.
func TestSilenceIsUnknown(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t)) // without history
		plain := harness.NewTimerClient(harness.NewClient(t, s))
		var lose atomic.Int32
		c := lossy(plain, &lose)
		set := func() uint64 { return c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence }
		g := set()
		lose.Store(1)
		go func() {
			time.Sleep(500 * time.Millisecond)
			set() // in place of the cancel
		}()
		c.Check(harness.NewChange(timer.Cancel, "k", g), timer.Unknown, 0)
		g = set()
		lose.Store(1)
		c.Check(harness.NewChange(timer.Fire, "k", g), timer.Unknown, 0) // it is over, and leaves nothing
		g = set()
		lose.Store(1000)
		started := time.Now()
		c.Check(moveTo("k", g, started.Add(-time.Hour)), timer.Unknown, 0)
		lose.Store(0)
		g = set()
		for _, w := range []store.Change{
			moveTo("k", g, time.Now().Add(400*24*time.Hour)), harness.NewChange(timer.Cancel, "_k", 0),
			harness.NewChange(timer.Cancel, "a.b", 0),
			{Request: timer.Request{Verb: timer.Cancel}, Key: "k", Target: "orders.*"},
		} {
			c.Timers.Policy.MaxDelay = 366 * 24 * time.Hour
			refused := (*store.Refusal)(nil)
			if a, err := c.Timers.Do(context.Background(), w); !errors.As(err, &refused) || refused.Code != 400 {
				t.Errorf("%s %s %s: %v %v, want a refusal", w.Verb, w.Key, w.Target, a, err)
			}
		}
		c.Check(harness.NewChange(timer.Get, "k", 0), timer.Pending, g)
	})
}

// TestVerdictsAroundDue: a verdict at any time around the due time is final: what was answered cancelled never arrives,
// what was too late has, and what was moved or fired arrives once.
func TestVerdictsAroundDue(t *testing.T) {
	t.Parallel()
	for _, history := range []time.Duration{-1, time.Minute} {
		t.Run(history.String(), func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := harness.TimersOn(t)
				cfg.TimerHistory = history
				harness.StartBroker(t, s, cfg)
				c := harness.NewTimerClient(harness.NewClient(t, s))
				in := c.Subscribe("orders.>")
				outcomes := make(map[timer.Outcome]int)
				for i := range 240 {
					verb := []timer.Verb{timer.Cancel, timer.Move, timer.Fire}[i%3]
					off := time.Duration(i/6-20) * 50 * time.Microsecond // ±1 ms
					due := time.Now().Add(20 * time.Millisecond)
					key := fmt.Sprint("k", i)
					g := c.Publish("delaytimer."+key+".orders.x", key, "Delay-Until",
						due.UTC().Format(time.RFC3339Nano)).Sequence
					if i%6 < 3 {
						g = 0
					}
					before := len(in.All())
					time.Sleep(time.Until(due.Add(off)))
					w := harness.NewChange(verb, key, g)
					if verb == timer.Move {
						w.For = "30ms"
					}
					a := c.Do(w)
					outcomes[a.Outcome]++
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
					came := len(in.All()) - before
					want := 1
					if a.Outcome == timer.Cancelled {
						want = 0
					}
					if came != want || a.Outcome == timer.Unknown || a.Outcome == timer.Conflict {
						t.Errorf("%s %s after due is %s, and there came %d", verb, off, a.Outcome, came)
					}
				}
				t.Log(outcomes)
				c.CheckNoDead()
			})
		})
	}
}

// TestMoveKeepsMessageID: a timer that was set under a Nats-Msg-Id can be moved within the stream's duplicate window,
// where the server acknowledges the move as a duplicate and stores nothing, and keeps the id.
func TestMoveKeepsMessageID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		in := c.Subscribe("orders.>")
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m", "Nats-Msg-Id", "mine").Sequence
		until := time.Now().Add(20 * time.Minute)
		if a := c.Check(moveTo("k", g, until), timer.Moved, 0); a.Generation <= g {
			t.Errorf("it has the generation %d, and had %d", a.Generation, g)
		}
		harness.CheckExactly(t, in, until, 0)
		if got := in.All()[0].Header.Get("Delay-Msg-Id"); got != "mine" {
			t.Errorf("it comes with the id %q", got)
		}
	})
}

// TestNothingOfOldLeader: that nothing stands there is believed of a leader that a majority follows, and of no other.
func TestNothingOfOldLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		var follow atomic.Bool
		natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			if follow.Load() || !strings.HasPrefix(question, "STREAM.INFO.") {
				return false
			}
			_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{},"state":{"last_seq":9},
				"cluster":{"leader":"old","replicas":[{"name":"b","offline":true},{"name":"c","offline":true}]}}`))
			return true
		})
		c.Timers.API.API = natstest.ProxyAPI
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if a, err := c.Timers.Do(ctx, harness.NewChange(timer.Cancel, "k", 0)); !errors.Is(err, store.ErrLeader) {
			t.Errorf("it says %+v %v, want %v", a, err, store.ErrLeader)
		}
		follow.Store(true)
		c.Check(harness.NewChange(timer.Cancel, "k", 0), timer.NotFound, 0)
	})
}

// TestListShowsWhatStands: what was replaced, moved or cancelled while no broker removes it is on no page, and no bulk
// touches it.
func TestListShowsWhatStands(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, harness.TimersOn(t))
		b.Stop()
		c := harness.NewTimerClient(harness.NewClient(t, s))
		var want uint64
		for range 3 {
			want = c.Publish("delaytimer.replaced.orders.x", "x", "Delay-For", "10m").Sequence
		}
		c.Publish("delaytimer.*.orders.x", "noise", "Delay-For", "10m")
		g := c.Publish("delaytimer.cancelled.orders.x", "x", "Delay-For", "10m").Sequence
		c.Check(harness.NewChange(timer.Cancel, "cancelled", g), timer.Cancelled, g)
		upTo := g + 1
		c.Publish("delaytimer.later.orders.x", "x", "Delay-For", "10m")
		for limit := 1; limit <= 10; limit++ {
			var got []string
			page := store.Page{UpTo: upTo, Limit: limit}
			for {
				l, err := c.Timers.List(context.Background(), store.Filter{Targets: []string{"orders.>"}}, page)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range l.Timers {
					got = append(got, fmt.Sprint(r.Key, " ", r.State, " ", r.Generation))
				}
				if page.After = l.Next; l.Next == 0 {
					break
				}
			}
			if want := fmt.Sprintf("[replaced pending %d cancelled cancelled %d]", want, g); fmt.Sprint(got) != want {
				t.Errorf("pages of %d list %v, want %s", limit, got, want)
			}
		}
		d, err := c.Timers.Bulk(context.Background(), store.Bulk{Verb: timer.Cancel})
		if err != nil || d.Matched != 2 || d.Outcomes[timer.Cancelled] != 2 {
			t.Errorf("cancelling all says %+v %v, want 2", d, err)
		}
	})
}

// TestBulk: page 1 fixes up to where; a page that is repeated moves nothing twice, and what does not match stays.
func TestBulk(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		in := c.Subscribe("orders.>")
		c.Subscribe("payments.>")
		begun := time.Now()
		for i := range 50 {
			c.Publish(fmt.Sprintf("delaytimer.order-%d.orders.x", i), "o", "Delay-For", "10m")
		}
		c.Publish("delaytimer.other.orders.x", "other", "Delay-For", "10m")
		c.Publish("delaytimer.order-1.payments.x", "payment", "Delay-For", "10m")
		c.Publish("delaytimer.order-99.orders.x", "later", "Delay-For", "3h")
		ctx := context.Background()
		b := store.Bulk{Verb: timer.Move, By: 5 * time.Minute, DryRun: true, Filter: store.Filter{
			Targets: []string{"orders.>"}, Key: "order-*", DueTo: begun.Add(time.Hour),
		}}
		dry, err := c.Timers.Bulk(ctx, b)
		if err != nil || dry.Matched != 50 || len(dry.Outcomes) > 0 {
			t.Fatalf("a dry run says %+v %v", dry, err)
		}
		b.DryRun = false
		b.Page = store.Page{UpTo: dry.UpTo, Limit: 20}
		var sum store.Done
		for pages := 1; ; pages++ {
			d, err := c.Timers.Bulk(ctx, b)
			if err != nil {
				t.Fatal(err)
			}
			again, err := c.Timers.Bulk(ctx, b) // its answer got lost
			if err != nil || pages < 3 && again.Matched > 20 || pages == 3 && again.Matched > 0 {
				t.Errorf("page %d repeated says %+v %v", pages, again, err)
			}
			sum.Add(d)
			sum.Add(again)
			if b.Page.After = max(d.Next, again.Next); b.Page.After == 0 {
				break
			}
		}
		if sum.Matched != 50 || sum.Outcomes[timer.Moved] != 50 || sum.Refused > 0 {
			t.Errorf("all pages say %+v", sum)
		}
		time.Sleep(time.Until(begun.Add(15*time.Minute - 1)))
		synctest.Wait()
		if got := harness.Bodies(in.All()); got != "other" {
			t.Errorf("before it is due there came %q", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := harness.Bodies(in.All()); got != "other o×50" && got != "o×50 other" {
			t.Errorf("when due there came %q", got)
		}
		b = store.Bulk{Verb: timer.Cancel, Filter: store.Filter{Targets: []string{"orders.>", "payments.>"}}}
		if d, err := c.Timers.Bulk(ctx, b); err != nil || d.Outcomes[timer.Cancelled] != 1 {
			t.Errorf("cancelling the rest says %+v %v", d, err)
		}
		time.Sleep(4 * time.Hour)
		if got := harness.Bodies(in.All()); got != "o×50 other" {
			t.Errorf("in the end there came %q", got)
		}
		c.CheckNoTimers()
	})
}
