package promises

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
)

// runFailing runs a service that fails for a number of requests, and then succeeds.
func runFailing(c *harness.Client, subject string, times int) *harness.Inbox {
	c.T.Helper()
	return c.Service(subject, func(n int) *nats.Msg {
		if n <= times {
			return harness.FailureReply("not yet")
		}
		return &nats.Msg{}
	})
}

// forever is the number of failures of a service that never succeeds.
const forever = math.MaxInt

// checkAttempts expects the arrivals in want: for each, the time after start, a slash, and the number of failed
// attempts in the header.
func checkAttempts(t *testing.T, all []harness.Arrival, start time.Time, want string) {
	t.Helper()
	var words []string
	for _, a := range all {
		words = append(words, a.At.Sub(start).String()+"/"+a.Header.Get(message.HeaderAttempts))
	}
	if got := strings.Join(words, " "); got != want {
		t.Errorf("attempts at %s, want %s", got, want)
	}
}

// TestRetries: a service fails five times. Each attempt has the same message, exactly at the time that RetryLadder
// sets, with the number of previous attempts in a header.
func TestRetries(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{RetryLadder: harness.Ladder(t, "2s 10s 1m")}, func(t *testing.T, c *harness.Client) {
		in := runFailing(c, "svc", 5)
		start := time.Now()
		c.Publish("delay.5s.svc", "x", message.HeaderDeliver, "request")
		time.Sleep(10 * time.Minute)
		got := in.Arrivals()
		checkAttempts(t, got, start, "5s/ 7s/1 17s/2 1m17s/3 2m17s/4 3m17s/5")
		for _, a := range got {
			if a.ID != got[0].ID || a.Header.Get("Nats-Msg-Id") != a.ID || a.Body != "x" {
				t.Errorf("%s with message id %s, want both %s", a.ID, a.Header.Get("Nats-Msg-Id"), got[0].ID)
			}
		}
		c.CheckEmpty()
	})
}

// TestLastAttempt: after the last refusal, a message becomes a dead letter. The letter has the refusals, the body and
// the headers.
func TestLastAttempt(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Attempts: 3,
		Deliver: deliver.Modes{Rules: message.Rules[message.Mode]{{Pattern: "svc.>", Value: message.ModeRequest}}}}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		in := c.Service("svc.a", func(int) *nats.Msg { return harness.FailureReply("no stock") })
		start := time.Now()
		c.Publish("delay.5s.svc.a", "payload", "X-Order", "42", "Nats-Msg-Id", "order-42")
		time.Sleep(10 * time.Minute)
		checkAttempts(t, in.Arrivals(), start, "5s/ 6s/1 11s/2")
		letters := c.DeadLetters()[string(message.Undelivered)]
		harness.CheckCount(t, letters, 1)
		stamp := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339Nano) }
		l := letters[0]
		for name, want := range map[string]string{
			message.HeaderAttempts: "3", message.HeaderFirstFailure: stamp(5 * time.Second),
			message.HeaderLastFailure: stamp(11 * time.Second),
			message.HeaderSubject:     "delay.5s.svc.a", message.HeaderID: in.Arrivals()[0].ID,
			message.HeaderMsgID: "order-42",
			"X-Order":           "42",
			message.HeaderError: "the service says 500 no stock",
		} {
			if got := l.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if l.Body != "payload" || l.Subject != "delaydead.undelivered.svc.a" || !l.At.Equal(start.Add(11*time.Second)) {
			t.Errorf("the dead letter %q is on %s since %s", l.Body, l.Subject, l.At)
		}
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestSilentService: a request without a reply within DELAY_REPLY_TIMEOUT counts as a refusal.
func TestSilentService(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{Attempts: 2, ReplyTimeout: 3 * time.Second}, func(t *testing.T, c *harness.Client) {
		in := c.Service("svc", func(int) *nats.Msg { return nil })
		start := time.Now()
		c.Publish("delay.5s.svc", "x", message.HeaderDeliver, "request")
		time.Sleep(10 * time.Minute)
		checkAttempts(t, in.Arrivals(), start, "5s/ 9s/1") // 3s of silence, 1s of waiting
		if letters := c.DeadLetters()[string(message.Undelivered)]; len(letters) != 1 ||
			!strings.Contains(letters[0].Header.Get(message.HeaderError), "no reply within 3s") {
			t.Errorf("dead letters %v, want one with the reason", letters)
		}
	})
}

// TestServiceRepliesWithJSON: any reply of a service is a delivery, even if the reply has the fields of a stream's
// acknowledgement.
func TestServiceRepliesWithJSON(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{Attempts: 3}, func(t *testing.T, c *harness.Client) {
		services := make(map[string]*harness.Inbox)
		for name, answer := range map[string]string{
			"stream":         `{"stream":"camera-7","state":"recording"}`,
			"stream_and_seq": `{"stream":"camera-7","seq":12}`,
			"err_code":       `{"error":{"err_code":17,"description":"already done"}}`,
			"status":         `{"error":{"err_code":503}}`,
			"other":          `{"id":7}`,
		} {
			services[name] = c.Service("svc."+name, func(int) *nats.Msg { return &nats.Msg{Data: []byte(answer)} })
			c.Publish("delay.5s.svc."+name, "x", message.HeaderDeliver, "request")
		}
		time.Sleep(10 * time.Minute)
		for name, in := range services {
			if got := len(in.Arrivals()); got != 1 {
				t.Errorf("the service %s was called %d times, want once", name, got)
			}
		}
		c.CheckNoDead()
	})
}

// TestExpires: a message is delivered up to the nanosecond at which it expires, and not afterwards.
func TestExpires(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		refused := runFailing(c, "svc", forever)
		start := time.Now()
		at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339Nano) }
		c.Publish("delay.5s.orders.x", "in time", message.HeaderExpires, "1ms")
		c.Publish("delay.5s.orders.x", "to the nanosecond", message.HeaderExpires, at(5*time.Second))
		c.Publish("delay.1m.orders.x", "still good", message.HeaderExpires, at(time.Hour))
		c.Publish("delay.1m.orders.x", "too late", message.HeaderExpires, at(time.Hour-1))
		c.Publish("delay.5s.svc", "no time to retry", message.HeaderExpires, at(10*time.Second), message.HeaderDeliver,
			"request")
		time.Sleep(30 * time.Second)
		b.Stop()
		time.Sleep(time.Until(start.Add(time.Hour)))
		b.Replace()
		time.Sleep(10 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "in time still good to the nanosecond")
		checkAttempts(t, refused.Arrivals(), start, "5s/ 6s/1") // the next attempt would be at 11s
		letters := c.DeadLetters()[string(message.Expired)]
		if got, want := harness.Bodies(letters), "no time to retry too late"; got != want {
			t.Fatalf("expired: %q, want %q", got, want)
		}
		for _, l := range letters {
			if want := map[string]time.Duration{"no time to retry": 6 * time.Second,
				"too late": time.Hour}[l.Body]; !l.At.Equal(start.Add(want)) {
				t.Errorf("%q is a dead letter after %s, want %s", l.Body, l.At.Sub(start), want)
			}
		}
	})
}

// TestTTL: the time to live of a message in the target's stream begins at the delivery.
func TestTTL(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client) {
		c.Create(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, AllowMsgTTL: true})
		c.Publish("delay.1m.orders.x", "x", message.HeaderTTL, "10s")
		time.Sleep(time.Minute + 9*time.Second)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "x")
		time.Sleep(5 * time.Second)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "")
	})
}
