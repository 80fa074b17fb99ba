package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// storeRetries stores requests in a retry lane, as a broker does.
func storeRetries(t *testing.T, i *Inspector, level string, requests ...message.Request) {
	t.Helper()
	for _, r := range requests {
		m := nats.NewMsg(i.names.Retry(level, r.Target))
		m.Header, m.Data = nats.Header(r.HopHeader()), []byte("body")
		if _, err := i.JetStream.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// newRequest returns a request without a refusal.
func newRequest(n uint64, target string) message.Request {
	at := time.Now().UTC()
	id := message.ID{Stream: "DELAY_1s", Sequence: n, At: at}
	return message.Request{ID: id.String(), Target: target, Accepted: at, Due: at, Hop: 1, AllowedRefusals: 20}
}

// lines returns a line for each group, with the time until the next attempt.
func (r RetryReport) lines() string {
	var b strings.Builder
	for _, g := range r.Groups {
		id, _, _ := strings.Cut(g.ID, "-9")
		fmt.Fprintf(&b, "%d %s %s %d of %d in %s (%s): %s\n", g.Messages, g.Target, g.State, g.Attempts, g.Allowed,
			g.Next.Sub(r.Time), id, g.Reason)
	}
	return b.String()
}

// retryWorld runs f with an inspector of two retry lanes. They contain messages in every state.
func retryWorld(t *testing.T, f func(t *testing.T, i *Inspector)) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s")
		cfg.RetryLadder = configOf(t, "", "2s 9s").Ladder
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		now := time.Now().UTC()
		after := now.Add
		mail := newRequest(1, "shop.mail").WithRefusal(now, after(2*time.Second), "no stock")
		twice := newRequest(2, "shop.mail").WithRefusal(now, after(time.Second), "x").
			WithRefusal(now, after(9*time.Second), "still no stock")
		short := newRequest(3, "shop.mail").WithRefusal(now, after(3*time.Second), "the last reason")
		short.AllowedRefusals = 2
		noRoom := twice.WithDeferral(after(7*time.Second), "JetStream has no room")
		noRoom.ID = newRequest(4, "").ID
		old := newRequest(5, "shop.sms") // from a broker that stores neither the reason nor the number of attempts
		old.AllowedRefusals, old.RetryAt = 0, after(time.Second)
		storeRetries(t, i, "2s", mail, newRequest(6, "shop.sms"), old)
		storeRetries(t, i, "9s", twice, noRoom, short)
		if _, err := i.JetStream.Publish(t.Context(), "delaysys.retry.9s.shop.forged", nil); err != nil {
			t.Fatal(err)
		}
		f(t, i)
	})
}

// TestRetrying: the count by target and state distinguishes deferred and refused messages. Each group has the time and
// the id of its earliest next attempt, and the newest reason.
func TestRetrying(t *testing.T) {
	retryWorld(t, func(t *testing.T, i *Inspector) {
		r, err := i.Retrying(t.Context(), RetryQuery{MaxRead: 100})
		if err != nil {
			t.Fatal(err)
		}
		const beginning = `3 shop.mail refused 1 of 2 in 2s (DELAY_1s-1): the last reason
1 shop.forged unreadable 0 of 0 in -2562047h47m16.854775808s (): `
		const end = `1 shop.mail deferred 2 of 20 in 7s (DELAY_1s-4): JetStream has no room
1 shop.sms deferred 0 of 0 in 1s (DELAY_1s-5): 
1 shop.sms resent 0 of 20 in 0s (DELAY_1s-6): 
`
		if got := r.lines(); !strings.HasPrefix(got, beginning) || !strings.HasSuffix(got, end) {
			t.Errorf("got\n%swant\n%s…\n%s", got, beginning, end)
		}
		const totals = "7 7 map[deferred:2 refused:3 resent:1 unreadable:1]"
		if got := fmt.Sprint(r.Messages, r.Waiting, r.States, r.NextPosition); got != totals {
			t.Errorf("totals %s, want %s", got, totals)
		}
	})
}

// TestRetryingIsBounded: Retrying stops after MaxRead messages, and returns a position. A query from this position
// continues with the next message.
func TestRetryingIsBounded(t *testing.T) {
	retryWorld(t, func(t *testing.T, i *Inspector) {
		var pages []string
		for first, n := (MessageRef{}), uint64(0); ; {
			r, err := i.Retrying(t.Context(), RetryQuery{MaxRead: 2, From: first})
			if err != nil {
				t.Fatal(err)
			}
			n += r.Messages
			pages = append(pages, fmt.Sprint(r.Messages, " of ", r.Waiting, " ", r.NextPosition))
			if r.NextPosition == "" {
				break
			}
			if first, err = ParseMessageRef(r.NextPosition); err != nil || !first.Partial {
				t.Fatalf("%s: got %v, want a partial reference", r.NextPosition, err)
			}
		}
		const want = "2 of 7 DELAY_RETRY_2s-3, 2 of 7 DELAY_RETRY_9s-2, 2 of 7 DELAY_RETRY_9s-4, 1 of 7 "
		if got := strings.Join(pages, ", "); got != want {
			t.Errorf("read %s, want %s", got, want)
		}
		level := MessageRef{ID: message.ID{Stream: "DELAY_1s", Sequence: 1}}
		_, err := i.Retrying(t.Context(), RetryQuery{MaxRead: 2, From: level})
		if !errors.Is(err, ErrNoRetryLane) || !strings.Contains(err.Error(), "DELAY_RETRY_2s, DELAY_RETRY_9s") {
			t.Errorf("from a level: got %v, want %v", err, ErrNoRetryLane)
		}
	})
}

// TestRetryingByTarget: Retrying reads only the messages for the targets of the pattern.
func TestRetryingByTarget(t *testing.T) {
	retryWorld(t, func(t *testing.T, i *Inspector) {
		for target, want := range map[string]uint64{"shop.sms": 2, "shop.*": 7, "*.mail": 4, "nobody.>": 0} {
			r, err := i.Retrying(t.Context(), RetryQuery{MaxRead: 100, Target: target})
			if err != nil {
				t.Fatal(err)
			}
			if r.Messages != want || r.Waiting != 7 {
				t.Errorf("%s: %d of %d, want %d of 7", target, r.Messages, r.Waiting, want)
			}
		}
		list, err := i.JetStream.Stream(t.Context(), "DELAY_RETRY_2s")
		if err != nil {
			t.Fatal(err)
		}
		for name := range list.ConsumerNames(t.Context()).Name() {
			t.Errorf("the consumer %s remains", name)
		}
	})
}

// TestRetryingKeepsItsMemory: if each message has its own target, the messages after the maximum number of groups form
// one more group for each state.
func TestRetryingKeepsItsMemory(t *testing.T) {
	i, err := Open(new(nats.Conn), configOf(t, "", "1s"))
	if err != nil {
		t.Fatal(err)
	}
	c := retryCount{
		Inspector: i,
		groups:    make(map[retryKey]*RetryGroup),
		report:    RetryReport{States: make(map[RetryState]uint64)},
	}
	const extra = 1000
	for n := range uint64(maxGroups + extra) {
		r := newRequest(n+1, fmt.Sprint("orders.", n))
		c.add(message.Incoming{Subject: i.names.Retry("1s", r.Target), Header: r.HopHeader(), HeadersOnly: true})
	}
	got := len(c.report.Groups)
	last := c.report.Groups[got-1]
	if got != maxGroups+1 || last.Target != "" || last.Messages != extra || last.State != Resent {
		t.Errorf("%d groups, the last %+v; want %d, the last with the remaining %d messages", got, last, maxGroups+1, extra)
	}
}
