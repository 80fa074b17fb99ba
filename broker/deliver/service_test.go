package deliver

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestService: in mode request the reply acknowledges, and an error, silence or nobody there is a refusal.
func TestService(t *testing.T) {
	const slow = 9 * time.Second
	for name, test := range map[string]struct {
		answer *nats.Msg // nil: none
		after  time.Duration
		took   time.Duration
		want   string
	}{
		"text":           {answer: &nats.Msg{Data: []byte("done")}, want: "delivered"},
		"nothing":        {answer: &nats.Msg{}, want: "delivered"},
		"slow":           {answer: &nats.Msg{Data: []byte("done")}, after: slow, took: slow, want: "delivered"},
		"a header":       {answer: &nats.Msg{Header: nats.Header{"X": {"y"}}}, want: "delivered"},
		"an error":       {answer: &nats.Msg{Header: nats.Header{"Nats-Service-Error": {"no such order"}, "Nats-Service-Error-Code": {"404"}}}, want: "refused 0"},
		"an error, text": {answer: &nats.Msg{Data: []byte("done"), Header: nats.Header{"Nats-Service-Error": {"no"}}}, want: "refused 0"},
		"its code alone": {answer: &nats.Msg{Header: nats.Header{"Nats-Service-Error-Code": {"10054"}}}, want: "refused 0"},
		"silence":        {took: replyTimeout, want: "refused 0"},
		"too late":       {answer: &nats.Msg{Data: []byte("done")}, after: replyTimeout + 1, took: replyTimeout, want: "refused 0"},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				seen := k.subscribe("svc", func(m *nats.Msg) {
					if test.answer == nil {
						return
					}
					answer := *test.answer
					time.Sleep(test.after)
					_ = m.RespondMsg(&answer)
				})
				k.send("svc", message.Reply).check(t, test.took, test.want)
				if got := seen.get(); got != 1 {
					t.Errorf("the service saw %d, want 1", got)
				}
				time.Sleep(time.Second) // what comes too late goes nowhere
			})
		})
	}
}

func TestServiceMissing(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		newKit(t, s).send("svc", message.Reply).check(t, 0, "refused 503")
	})
}

// TestServiceBehindStream has a stream on the service's subject, for the record: its acknowledgement, or refusal, is not
// the service's.
func TestServiceBehindStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"svc.>"}, Discard: jetstream.DiscardNew, MaxMsgs: 1})
		for range 2 { // the second is refused by the stream
			k.send("svc.away", message.Reply).check(t, replyTimeout, "refused 0")
		}
		k.subscribe("svc.there", func(m *nats.Msg) {
			time.Sleep(time.Second)
			_ = m.Respond([]byte("done"))
		})
		k.send("svc.there", message.Reply).check(t, time.Second, "delivered")
	})
}

// TestServiceLikeStream replies as a stream would. As soon as it is known that no such stream listens, that is a reply.
func TestServiceLikeStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
		k.subscribe("svc", func(m *nats.Msg) { _ = m.Respond([]byte(`{"stream":"AUDIT","seq":3}`)) })
		k.send("svc", message.Reply).check(t, replyTimeout, "delivered") // the streams were not known
		k.subscribe("ui", nil)
		k.send("ui", message.Auto).check(t, 2*silence, "delivered")
		k.send("svc", message.Reply).check(t, 0, "delivered")
	})
}

// TestServiceReason carries what the service says, and no more lines than one.
func TestServiceReason(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.subscribe("svc", func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Nats-Service-Error": {"sold out"}, "Nats-Service-Error-Code": {"409"}}})
		})
		v := k.send("svc", message.Reply)
		v.check(t, 0, "refused 0")
		if got, want := v.all[0].Reason, "the service says 409 sold out"; got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	})
}

func TestParseRates(t *testing.T) {
	r, err := ParseRates("shop.mail=50, reports.*=5,>=1000")
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]time.Duration{
		"shop.mail": 20 * time.Millisecond, "reports.daily": 200 * time.Millisecond, "reports.a.b": time.Millisecond, "x": time.Millisecond,
	} {
		if got := r.interval(target); got != want {
			t.Errorf("%s: every %s, want %s", target, got, want)
		}
	}
	if got := (Rates{{"a.>", 1}}).interval("b"); got != 0 {
		t.Errorf("no rule: every %s, want 0", got)
	}
	for spec, says := range map[string]string{"shop": "pattern=", "shop=x": "pattern=", "shop=0": "1 to", "shop=1000001": "1 to", "=": "pattern="} {
		if _, err := ParseRates(spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q in it", spec, err, says)
		}
	}
}

// TestRate sends 300 at once to a target that takes 100 a second: one goes, and each of the others is told a turn of its
// own, 10 ms after the one before. Another target of the pattern waits for none of them.
func TestRate(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.rates = Rates{{"slow.>", 100}}
		seen := k.subscribe("slow.>", nil)
		start := time.Now()
		var told []time.Duration
		var pacer string
		deliver := func(target, paced string) string {
			got := "sent"
			k.Deliver(Message{Target: target, Mode: message.Core, Paced: paced}, func(r Result) {
				if r.Outcome == Paced {
					told, pacer = append(told, r.Turn.Sub(start)), r.Pacer
					got = "later"
				}
			})
			return got
		}
		for i := range 300 {
			want := "later"
			if i == 0 {
				want = "sent"
			}
			if got := deliver("slow.a", ""); got != want {
				t.Fatalf("message %d: %s, want %s", i, got, want)
			}
		}
		for i, turn := range told {
			if want := time.Duration(i+1) * 10 * time.Millisecond; turn != want {
				t.Fatalf("turn %d is after %s, want %s", i, turn, want)
			}
		}
		if got := deliver("slow.b", ""); got != "sent" {
			t.Errorf("another target: %s, want sent", got)
		}
		for range 299 { // they come in their turns
			time.Sleep(10 * time.Millisecond)
			if got := deliver("slow.a", pacer); got != "sent" {
				t.Fatalf("in its turn: %s", got)
			}
		}
		if got := deliver("slow.a", ""); got != "later" {
			t.Errorf("after the last turn, at once: %s, want later", got)
		}
		time.Sleep(20 * time.Millisecond)
		if got := deliver("slow.a", ""); got != "sent" {
			t.Errorf("after a pause: %s, want sent", got)
		}
		time.Sleep(time.Second)
		if got := seen.get(); got != 302 {
			t.Errorf("%d were seen, want 302", got)
		}
	})
}

// TestRateOfAnother: a turn that another deliverer gave is none. After a restart, what had one and what is new share the
// rate.
func TestRateOfAnother(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.rates = Rates{{"slow", 100}}
		k.subscribe("slow", nil)
		start, last := time.Now(), time.Duration(0)
		for range 50 {
			for _, paced := range []string{"", "another"} {
				k.Deliver(Message{Target: "slow", Mode: message.Core, Paced: paced}, func(r Result) {
					if r.Outcome == Paced {
						last = r.Turn.Sub(start)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
		}
		if want := 990 * time.Millisecond; last != want {
			t.Errorf("the hundredth has its turn after %s, want %s", last, want)
		}
	})
}

// TestRateAndExpiry: what expires before its turn reserves none.
func TestRateAndExpiry(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.rates = Rates{{"slow", 1}}
		k.subscribe("slow", nil)
		start := time.Now()
		var expired int
		for range 300 {
			k.Deliver(Message{Target: "slow", Mode: message.Core, Expires: start.Add(10 * time.Second)}, func(r Result) {
				if r.Outcome == Expired {
					expired++
				}
			})
		}
		var turn time.Duration
		k.Deliver(Message{Target: "slow", Mode: message.Core}, func(r Result) { turn = r.Turn.Sub(start) })
		if expired != 289 || turn != 11*time.Second {
			t.Errorf("%d have expired, and the next turn is after %s; want 289 and 11s", expired, turn)
		}
		time.Sleep(time.Second)
	})
}

// owner of messages.
type owner struct{ stopped atomic.Bool }

func (o *owner) MayDeliver() bool { return !o.stopped.Load() }

// TestRecall: what waits of an owner who stops is given back at once and not sent, what others have there is.
func TestRecall(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("svc", func(m *nats.Msg) { time.AfterFunc(judgeEvery/2, func() { _ = m.Respond(nil) }) })
		var back, sent atomic.Int32
		stops, stays := new(owner), new(owner)
		for i := range share + 200 {
			o := stops
			if i%2 == 1 {
				o = stays
			}
			k.Deliver(Message{Target: "svc", Mode: message.Reply, Owner: o}, func(r Result) {
				if errors.Is(r.Err, ErrDraining) {
					back.Add(1)
				} else {
					sent.Add(1)
				}
			})
		}
		stops.stopped.Store(true)
		k.Recall(stops)
		if got := back.Load(); got != 100 {
			t.Errorf("%d are given back, want 100", got)
		}
		time.Sleep(3 * time.Second)
		if back, sent := back.Load(), sent.Load(); back != 100 || sent != share+100 || seen.get() != share+100 {
			t.Errorf("%d given back, %d answered, %d seen; want 100 and %d", back, sent, seen.get(), share+100)
		}
		stays.stopped.Store(true) // asked again when its turn comes
		k.Deliver(Message{Target: "svc", Mode: message.Reply, Owner: stays}, func(r Result) { back.Add(1) })
		if back.Load() != 101 {
			t.Error("an owner that may not deliver delivers")
		}
	})
}

// TestExpiredWhileWaiting: what waits for its target's share and expires there is not sent any more.
func TestExpiredWhileWaiting(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const busy = judgeEvery / 2
		k := newKit(t, s)
		seen := k.subscribe("svc", func(m *nats.Msg) { time.AfterFunc(busy, func() { _ = m.Respond(nil) }) })
		outcomes := make(chan Outcome, share+2)
		start := time.Now()
		for i := range share + 2 {
			m := Message{Target: "svc", Mode: message.Reply}
			switch i {
			case share:
				m.Expires = start.Add(busy - 1)
			case share + 1:
				m.Expires = start.Add(busy)
			}
			k.Deliver(m, func(r Result) { outcomes <- r.Outcome })
		}
		count := make(map[Outcome]int)
		for range share + 2 {
			count[<-outcomes]++
		}
		if count[Expired] != 1 || count[Delivered] != share+1 {
			t.Errorf("got %v, want one that expired and all others delivered", count)
		}
		if got := seen.get(); got != share+1 {
			t.Errorf("the service saw %d, want %d", got, share+1)
		}
	})
}
