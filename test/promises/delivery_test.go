package promises

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// service answers requests on a subject and records them. If answer returns nil, a request gets no reply.
func service(c *harness.Client, subject string, answer func(n int) *nats.Msg) *harness.Inbox {
	c.T.Helper()
	in := c.Subscribe(subject)
	n := 0
	if _, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		n++
		if a := answer(n); a != nil {
			_ = m.RespondMsg(a)
		}
	}); err != nil {
		c.T.Fatal(err)
	}
	return in
}

// fails is the reply of a service that could not do its work.
func fails(text string) *nats.Msg {
	return &nats.Msg{Header: nats.Header{"Nats-Service-Error": {text}, "Nats-Service-Error-Code": {"500"}}}
}

// offsets are the times of arrival after start, each with the number of failed attempts that its headers mention.
func offsets(all []harness.Arrival, start time.Time) string {
	var words []string
	for _, a := range all {
		words = append(words, a.At.Sub(start).String()+"/"+a.Header.Get(message.HeaderAttempts))
	}
	return strings.Join(words, " ")
}

// TestRetries: a service fails five times. Each attempt comes exactly when the setting says, has the number of the
// attempts before it in a header, and is the same message.
func TestRetries(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{RetryLadder: harness.Ladder(t, "2s 10s 1m")})
		c := harness.NewClient(t, s)
		in := service(c, "svc", func(n int) *nats.Msg {
			if n <= 5 {
				return fails("not yet")
			}
			return &nats.Msg{}
		})
		start := time.Now()
		c.Publish("delay.5s.svc", "x", message.HeaderDeliver, "request")
		time.Sleep(time.Hour)
		got := in.All()
		if got, want := offsets(got, start), "5s/ 7s/1 17s/2 1m17s/3 2m17s/4 3m17s/5"; got != want {
			t.Errorf("attempts at %s, want %s", got, want)
		}
		for _, a := range got {
			if a.ID != got[0].ID || a.Header.Get("Nats-Msg-Id") != a.ID || a.Body != "x" {
				t.Errorf("%s with message id %s, want both %s", a.ID, a.Header.Get("Nats-Msg-Id"), got[0].ID)
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestLastAttempt: after the last refusal, a message becomes a dead letter with all its details.
func TestLastAttempt(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 3,
			Deliver: deliver.Modes{Rules: message.Rules[message.Mode]{{Pattern: "svc.>", Value: message.ModeRequest}}}})
		c := harness.NewClient(t, s)
		in := service(c, "svc.a", func(int) *nats.Msg { return fails("no stock") })
		start := time.Now()
		c.Publish("delay.5s.svc.a", "payload", "X-Order", "42", "Nats-Msg-Id", "order-42")
		time.Sleep(time.Hour)
		if got, want := offsets(in.All(), start), "5s/ 6s/1 11s/2"; got != want {
			t.Errorf("attempts at %s, want %s", got, want)
		}
		letters := c.Dead()[string(message.Undelivered)]
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		stamp := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339Nano) }
		l := letters[0]
		for name, want := range map[string]string{
			message.HeaderAttempts: "3", message.HeaderFirstFailure: stamp(5 * time.Second),
			message.HeaderLastFailure: stamp(11 * time.Second),
			message.HeaderSubject:     "delay.5s.svc.a", message.HeaderID: in.All()[0].ID,
			message.HeaderMsgID: "order-42",
			"X-Order":           "42",
			message.HeaderError: "the target refused all of 3 attempts; last error: the service says 500 no stock",
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

// TestSilentService: a service without a reply within the time limit counts as a refusal, and a late reply changes
// nothing.
func TestSilentService(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 2, ReplyTimeout: 3 * time.Second})
		c := harness.NewClient(t, s)
		in := service(c, "svc", func(int) *nats.Msg { return nil })
		start := time.Now()
		c.Publish("delay.5s.svc", "x", message.HeaderDeliver, "request")
		time.Sleep(time.Hour)
		if got, want := offsets(in.All(), start), "5s/ 9s/1"; got != want { // 3s of silence, 1s of waiting
			t.Errorf("attempts at %s, want %s", got, want)
		}
		if letters := c.Dead()[string(message.Undelivered)]; len(letters) != 1 ||
			!strings.Contains(letters[0].Header.Get(message.HeaderError), "no reply within 3s") {
			t.Errorf("dead letters %v, want one that says so", letters)
		}
	})
}

// TestServiceRepliesWithJSON: any reply of a service means that it has the message, even if the reply has fields like
// those of a stream's acknowledgement.
func TestServiceRepliesWithJSON(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 3})
		c := harness.NewClient(t, s)
		services := make(map[string]*harness.Inbox)
		for name, answer := range map[string]string{
			"stream":         `{"stream":"camera-7","state":"recording"}`,
			"stream_and_seq": `{"stream":"camera-7","seq":12}`,
			"err_code":       `{"error":{"err_code":17,"description":"already done"}}`,
			"status":         `{"error":{"err_code":503}}`,
			"other":          `{"id":7}`,
		} {
			services[name] = service(c, "svc."+name, func(int) *nats.Msg { return &nats.Msg{Data: []byte(answer)} })
			c.Publish("delay.5s.svc."+name, "x", message.HeaderDeliver, "request")
		}
		time.Sleep(time.Hour)
		for name, in := range services {
			if got := len(in.All()); got != 1 {
				t.Errorf("the service %s was called %d times, want once", name, got)
			}
		}
		c.CheckNoDead()
	})
}

// TestExpires: a message is delivered up to the nanosecond at which it expires, and not afterwards.
func TestExpires(t *testing.T) { // not in parallel: the server is restarted
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{})
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		failing := service(c, "svc", func(int) *nats.Msg { return fails("no") })
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
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(time.Hour)
		if got, want := harness.Bodies(in.All()), "in time still good to the nanosecond"; got != want {
			t.Errorf("delivered %q, want %q", got, want)
		}
		if got, want := offsets(failing.All(), start), "5s/ 6s/1"; got != want { // the next would be at 11s
			t.Errorf("attempts at %s, want %s", got, want)
		}
		letters := c.Dead()[string(message.Expired)]
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

// TestTTL: the time to live of a message in the target's stream begins with the delivery, not with the publish.
func TestTTL(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{})
		c := harness.NewClient(t, s)
		c.Create(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, AllowMsgTTL: true})
		c.Publish("delay.1h.orders.x", "x", message.HeaderTTL, "10s")
		time.Sleep(time.Hour + 9*time.Second)
		if got := harness.Bodies(c.Arrivals("ORDERS")); got != "x" {
			t.Errorf("9s after the delivery the target holds %q, want it", got)
		}
		time.Sleep(5 * time.Second)
		if got := harness.Bodies(c.Arrivals("ORDERS")); got != "" {
			t.Errorf("14s after the delivery the target still holds %q", got)
		}
	})
}

// TestFloodOfOneTarget publishes 3,000 messages, due at one instant, for a target with a rate of 50 a second. They
// arrive at exactly that rate, also across a restart of the broker. Two hundred messages for other targets, due
// meanwhile, are all on time.
func TestFloodOfOneTarget(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const flood, rate, others = 3000, 50, 100
		cfg := broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}, HoldMessages: 256}
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		slow, fast := c.Subscribe("slow.>"), c.Subscribe("orders.>")
		due := time.Now().Add(10 * time.Second)
		c.Many("delay.10s.slow.x", flood)
		for i := range others {
			c.Publish("delay.10s.orders.x", strconv.Itoa(i))
			c.Publish(fmt.Sprintf("delayin.%dms.orders.y", 10_000+997*i), strconv.Itoa(i))
		}
		time.Sleep(time.Until(due.Add(29*time.Second + 999*time.Millisecond)))
		synctest.Wait()
		if got, want := len(slow.All()), 30*rate; got != want {
			t.Fatalf("after 30s %d came, want %d", got, want)
		}
		away := time.Now()
		b.Stop()
		harness.StartBroker(t, s, cfg)
		back := time.Now()
		time.Sleep(time.Hour)
		got := slow.All()
		if len(got) != flood {
			t.Fatalf("%d of the flood came, want %d, each once", len(got), flood)
		}
		for i, a := range got {
			want := due.Add(time.Duration(i) * time.Second / rate)
			if first := 30 * rate; want.After(away) { // a restart begins with new turns
				want = back.Add(time.Duration(i-first) * time.Second / rate)
			}
			if !a.At.Equal(want) {
				t.Fatalf("message %d of the flood came %s after it was due, want %s", i, a.At.Sub(due), want.Sub(due))
			}
		}
		if got := len(fast.All()); got != 2*others {
			t.Errorf("%d of the others came, want %d", got, 2*others)
		}
		for _, a := range fast.All() {
			if !a.At.Equal(a.Due) {
				t.Errorf("%s on %s came %s late", a.Body, a.Subject, a.At.Sub(a.Due))
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestPendingLimits: a full level refuses messages of clients, but none that are already on their way. If the limit is
// set below what a level holds, nothing is removed.
func TestPendingLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m 10m"), MaxPending: 100})
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delayin.21m.orders.x", "chained") // its second leg finds the level full, by itself among others
		synctest.Wait()
		for range 99 {
			c.Publish("delay.10m.orders.x", "x")
		}
		_, err := c.JS.Publish(context.Background(), "delay.10m.orders.x", []byte("one too many"),
			jetstream.WithRetryAttempts(0))
		if err == nil || !strings.Contains(err.Error(), "maximum messages exceeded") {
			t.Errorf("got %v, want a refusal that says so", err)
		}
		b.Stop()
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m 10m"), MaxPending: 10})
		level := c.Stream("DELAY_10m")
		if info := level.CachedInfo(); info.State.Msgs != 100 || info.Config.MaxMsgs != 10 {
			t.Errorf("the level holds %d and may hold %d, want 100 and 10", info.State.Msgs, info.Config.MaxMsgs)
		}
		harness.CheckExactly(t, in, start.Add(21*time.Minute), 99)
		if got, want := harness.Bodies(in.All()), "chained x×99"; got != want {
			t.Errorf("delivered %q, want %q", got, want)
		}
		for _, a := range in.All() {
			if !a.At.Equal(a.Due) {
				t.Errorf("%s came %s late", a.Body, a.At.Sub(a.Due))
			}
		}
		c.CheckNoDead()
	})
}

// TestTooLargeToRetry: a message fits into its level as the client publishes it, but not with the headers that the
// broker adds. When its delivery fails for good, it still becomes a dead letter.
func TestTooLargeToRetry(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 3})
		c := harness.NewClient(t, s)
		in := service(c, "svc", func(int) *nats.Msg { return fails("no") })
		c.Publish("delay.1s.svc", strings.Repeat("x", int(c.NC.MaxPayload())-4096-200), message.HeaderDeliver,
			"request")
		time.Sleep(10 * time.Minute)
		if got := len(in.All()); got != 1 {
			t.Errorf("%d attempts, want 1: it cannot wait for another", got)
		}
		if got := len(c.Dead()[string(message.TooLarge)]); got != 1 {
			t.Errorf("%d dead letters, want 1", got)
		}
	})
}

// TestRateAfterOutage: messages were put off while their target's stream had no room. Afterwards they are delivered
// within the rate, together with those that become due.
func TestRateAfterOutage(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const rate, outage, flood = 2, 3 * time.Minute, 800
		harness.StartBroker(t, s, broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}})
		c := harness.NewClient(t, s)
		start := time.Now()
		asked := make(map[time.Duration]int)
		if _, err := c.NC.Subscribe("slow.x", func(m *nats.Msg) {
			now := time.Since(start)
			asked[now.Truncate(time.Second)]++
			answer := `{"stream":"S", "seq":7}`
			if now < outage {
				answer = `{"error":{"code":500,"err_code":10047,"description":"no storage left"}}`
			}
			_ = m.Respond([]byte(answer))
		}); err != nil {
			t.Fatal(err)
		}
		c.Many("delay.10s.slow.x", flood)
		time.Sleep(time.Hour)
		for second, n := range asked {
			if n > rate {
				t.Fatalf("in second %s it was asked %d times, want at most %d", second, n, rate)
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestRateOfTheLargest: messages of the largest size that a level accepts leave no room for the headers of a retry
// lane. If only the target's rate puts them off, they need no retry lane: they wait in their level.
func TestRateOfTheLargest(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: 1}},
			Ladder: harness.Ladder(t, "1s 5s 10s")})
		c := harness.NewClient(t, s)
		slow := c.Subscribe("slow.>")
		due := time.Now().Add(5 * time.Second)
		const count = 10
		body := strings.Repeat("x", 1<<20-4<<10)
		for range count {
			c.Publish("delay.5s.slow.x", body)
		}
		time.Sleep(time.Hour)
		got := slow.All()
		for i, a := range got {
			if want := due.Add(time.Duration(i) * time.Second); !a.At.Equal(want) || a.Body != body {
				t.Errorf("number %d, of %d bytes, came at %s, want %s", i, len(a.Body), a.At, want)
			}
		}
		if len(got) != count {
			t.Errorf("%d came, want %d", len(got), count)
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}
