package deliver

import (
	"strings"
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
		k.Rates = Rates{{"slow.>", 100}}
		seen := k.subscribe("slow.>", nil)
		start := time.Now()
		var told []time.Duration
		deliver := func(target string, paced bool) string {
			got := "sent"
			k.Deliver(Message{Target: target, Mode: message.Core, Paced: paced}, func(r Result) {
				if r.Outcome == Paced {
					told = append(told, r.Turn.Sub(start))
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
			if got := deliver("slow.a", false); got != want {
				t.Fatalf("message %d: %s, want %s", i, got, want)
			}
		}
		for i, turn := range told {
			if want := time.Duration(i+1) * 10 * time.Millisecond; turn != want {
				t.Fatalf("turn %d is after %s, want %s", i, turn, want)
			}
		}
		if got := deliver("slow.b", false); got != "sent" {
			t.Errorf("another target: %s, want sent", got)
		}
		for range 299 { // they come in their turns
			time.Sleep(10 * time.Millisecond)
			if got := deliver("slow.a", true); got != "sent" {
				t.Fatalf("in its turn: %s", got)
			}
		}
		if got := deliver("slow.a", false); got != "later" {
			t.Errorf("after the last turn, at once: %s, want later", got)
		}
		time.Sleep(20 * time.Millisecond)
		if got := deliver("slow.a", false); got != "sent" {
			t.Errorf("after a pause: %s, want sent", got)
		}
		time.Sleep(time.Second)
		if got := seen.get(); got != 302 {
			t.Errorf("%d were seen, want 302", got)
		}
	})
}

// TestRateAfterRestart: a turn that another deliverer gave is counted by one that does not know of it.
func TestRateAfterRestart(t *testing.T) {
	now := time.Now()
	target := &target{interval: 10 * time.Millisecond}
	if got := target.takeTurn(now, true); !got.Equal(now) {
		t.Errorf("a reserved turn: after %s, want at once", got.Sub(now))
	}
	if got := target.takeTurn(now, false).Sub(now); got != 10*time.Millisecond {
		t.Errorf("the next turn: after %s, want 10ms", got)
	}
	if got := target.takeTurn(now, true).Sub(now); got != 0 {
		t.Errorf("another reserved turn: after %s, want at once", got)
	}
}

// TestExpiredWhileWaiting: what waits for its target's share and expires there is not sent any more.
func TestExpiredWhileWaiting(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const busy = time.Second / 2
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
