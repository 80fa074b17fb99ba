package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// dropAcks returns a client whose publishes are stored. While lose is positive, each publish decrements lose and gets
// no answer.
func dropAcks(c *harness.TimerClient, lose *atomic.Int32) *harness.TimerClient {
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

// TestLostAcknowledgements: the stream stores a change, and the acknowledgement is lost. The client still gets the
// outcome of its change, and not conflict, even if the timer has fired when the client reads the outcome.
func TestLostAcknowledgements(t *testing.T) {
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = time.Minute
	harness.Bubble(t, cfg, func(t *testing.T, client *harness.Client) {
		plain := harness.NewTimerClient(client)
		in := plain.Subscribe("orders.>")
		var lose atomic.Int32
		c := dropAcks(plain, &lose)
		for _, generation := range []bool{true, false} {
			for verb, want := range map[timer.Verb]timer.Outcome{
				timer.Cancel: timer.Cancelled, timer.Move: timer.Moved, timer.Fire: timer.Fired,
			} {
				before := len(in.Arrivals())
				g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence
				w := harness.NewChange(verb, "k", g)
				if !generation {
					w.Generation = 0
				}
				if verb == timer.Move {
					w.For = "500ms" // the timer fires before the client reads the outcome
				}
				lose.Store(1)
				a := c.Check(w, want, 0)
				if verb == timer.Cancel && a.Generation != g || verb != timer.Cancel && a.Generation <= g {
					t.Errorf("%s returns generation %d, but the timer had %d", verb, a.Generation, g)
				}
				time.Sleep(time.Second)
				if n := len(in.Arrivals()) - before; n != map[timer.Verb]int{timer.Move: 1, timer.Fire: 1}[verb] {
					t.Errorf("after %s, %d arrived", verb, n)
				}
				time.Sleep(2 * time.Minute)
			}
		}
		w := harness.NewChange(timer.Set, "absent", 0)
		w.Conditional, w.Header, w.Body = true, message.Header{"Delay-For": {"500ms"}}, []byte("set")
		lose.Store(1)
		c.Check(w, timer.Fired, 0)
		w.Header = message.Header{"Delay-For": {"10m"}}
		c.Check(w, timer.Conflict, 0) // the outcome of the first set is still the last entry
		time.Sleep(2 * time.Minute)
		lose.Store(1)
		first := c.Check(w, timer.Pending, 0)
		c.Check(w, timer.Conflict, first.Generation)
		lose.Store(1)
		w.Generation = first.Generation
		c.Check(w, timer.Pending, 0)
	})
}

// TestExtraDeliveryBecomesMove: a client fires a series, and the publish finds no leader. Then a plain timer replaces
// the series, and another plain timer replaces the first. The client's retry fires the second plain timer, and nothing
// else.
func TestExtraDeliveryBecomesMove(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		plain := harness.NewSeriesClient(c)
		in := c.Subscribe("orders.>")
		replace := func(body string) { c.Publish("delaytimer.k.orders.x", body, "Delay-For", "1h") }
		timers, tries := harness.CopyTimers(plain.Timers), 0
		timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
			switch tries++; tries {
			case 1:
				replace("second")
				return jsapi.Reply{Ack: jsapi.Ack{Code: jsapi.CodeUnavailable}}
			case 2:
				replace("third")
			}
			return plain.Timers.Publish(ctx, m)
		}
		c.Publish("delaytimer.k.orders.x", "series", "Delay-Every", "1h")
		changed := &harness.TimerClient{Client: c, Timers: timers}
		changed.Check(harness.NewChange(timer.Fire, "k", 0), timer.Fired, 0)
		time.Sleep(time.Second)
		harness.CheckBodies(t, in.Arrivals(), "third")
	})
}

// TestLostAcknowledgementOfExtraDelivery: the stream stored the extra delivery of a series, the acknowledgement was
// lost, and the last round of the series fires before the next attempt. The outcome is fired, and the broker makes the
// extra delivery once.
func TestLostAcknowledgementOfExtraDelivery(t *testing.T) {
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = time.Minute
	harness.Bubble(t, cfg, func(t *testing.T, client *harness.Client) {
		plain := harness.NewSeriesClient(client)
		in := plain.Subscribe("orders.>")
		var lose atomic.Int32
		c := dropAcks(plain, &lose)
		plain.Publish("delaytimer.k.orders.x", "k", "Delay-Every", "1m", "Delay-Rounds", "1")
		time.Sleep(time.Minute - 500*time.Millisecond) // the publish times out after a second
		lose.Store(1)
		c.Check(harness.NewChange(timer.Fire, "k", 0), timer.Fired, 1)
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "k×2")
	})
}

// refusedAsLast is the server's answer to a publish that expects another last sequence.
var refusedAsLast = jsapi.Reply{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Code: jsapi.CodeWrongLast, Status: 400}}

// TestRefusedByOldLeader: a new leader has stored a change, but the client gets the refusal of a deposed leader. The
// outcome is correct, even though another client has stored a later entry, and the change is published once.
func TestRefusedByOldLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, harness.TimerConfig(t))
		b.Stop()
		plain := harness.NewTimerClient(harness.NewClient(t, s))
		stored := func(m *nats.Msg) {
			if m == nil {
				return
			}
			if reply := plain.Timers.Publish(t.Context(), m); reply.Outcome() != jsapi.Stored {
				t.Errorf("not stored: %v", reply.Failure())
			}
		}
		c := &harness.TimerClient{Client: plain.Client, Timers: harness.CopyTimers(plain.Timers)}
		var over func() *nats.Msg // another client's later entry
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
						t.Errorf("%s, with a later %s: generation %d, want above %d", verb, header, a.Generation, g)
					}
					if published != 1 {
						t.Errorf("%s, with a later %s: published %d times, want once", verb, header, published)
					}
				}
			}
		}
	})
}

// TestRefusedUntilTimeout: one leader refuses a change of a timer, and another leader shows the timer as pending. The
// client retries until its timeout.
func TestRefusedUntilTimeout(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimerConfig(t)).Stop()
		c := harness.NewTimerClient(harness.NewClient(t, s))
		c.Publish("delaytimer.k.orders.x", "x", "Delay-For", "10m")
		asked := 0
		c.Timers.Publish = func(ctx context.Context, _ *nats.Msg) jsapi.Reply {
			if asked++; asked > 1000 {
				<-ctx.Done() // otherwise no fake time passes, and the loop does not end
			}
			return refusedAsLast
		}
		c.Check(harness.NewChange(timer.Cancel, "k", 0), timer.Unknown, 0)
		if asked < 50 || asked > 102 {
			t.Errorf("%d attempts in five seconds, want 50 to 102", asked)
		}
	})
}

// TestSilenceIsUnknown: if a change gets no answer, and no entry shows whether the stream stored the change, the
// outcome is unknown. An invalid request is refused with an error.
func TestSilenceIsUnknown(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimerConfig(t)) // without history
		plain := harness.NewTimerClient(harness.NewClient(t, s))
		var lose atomic.Int32
		c := dropAcks(plain, &lose)
		set := func() uint64 { return c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m").Sequence }
		g := set()
		lose.Store(1)
		go func() {
			time.Sleep(500 * time.Millisecond)
			set() // replaces the stored cancel, which the broker then removes
		}()
		c.Check(harness.NewChange(timer.Cancel, "k", g), timer.Unknown, 0)
		g = set()
		lose.Store(1)
		c.Check(harness.NewChange(timer.Fire, "k", g), timer.Unknown, 0) // the timer fires, and its entries are removed
		g = set()
		lose.Store(1000)
		started := time.Now()
		c.Check(moveTo("k", g, started.Add(-time.Hour)), timer.Unknown, 0)
		lose.Store(0)
		g = set()
		for _, w := range []change.Change{
			moveTo("k", g, time.Now().Add(400*24*time.Hour)), harness.NewChange(timer.Cancel, "_k", 0),
			harness.NewChange(timer.Cancel, "a.b", 0),
			{Call: timer.Call{Verb: timer.Cancel}, Key: "k", Target: "orders.*"},
		} {
			c.Timers.Policy.MaxDelay = 366 * 24 * time.Hour
			refused := (*change.Error)(nil)
			if a, err := c.Timers.Do(context.Background(), w); !errors.As(err, &refused) || refused.Code != 400 {
				t.Errorf("%s %s %s: %v %v, want a refusal", w.Verb, w.Key, w.Target, a, err)
			}
		}
		c.Check(harness.NewChange(timer.Get, "k", 0), timer.Pending, g)
	})
}

// TestOldLeaderProvesNothing: only the answer of a leader with a majority proves that a subject has no entry.
func TestOldLeaderProvesNothing(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimerConfig(t))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		var follow atomic.Bool
		c.Timers.API.API = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			if follow.Load() || !strings.HasPrefix(question, "STREAM.INFO.") {
				return false
			}
			_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{},"state":{"last_seq":9},
				"cluster":{"leader":"old","replicas":[{"name":"b","offline":true},{"name":"c","offline":true}]}}`))
			return true
		})
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if a, err := c.Timers.Do(ctx, harness.NewChange(timer.Cancel, "k", 0)); !errors.Is(err, change.ErrLeader) {
			t.Errorf("got %+v, %v, want %v", a, err, change.ErrLeader)
		}
		follow.Store(true)
		c.Check(harness.NewChange(timer.Cancel, "k", 0), timer.NotFound, 0)
	})
}
