package schedules

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestScheduleOfOtherSubjects: a request reaches only the targets, and ends only the schedules, that DELAY_SCHEDULES
// allows for its subject.
func TestScheduleOfOtherSubjects(t *testing.T) {
	t.Parallel()
	cfg := harness.ScheduleConfig(t)
	cfg.Targets = []string{"orders.open.>", "mail.>"}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		in := c.Subscribe(">")
		soon := harness.AtExpression(time.Now().Add(time.Minute))
		for _, target := range []string{
			"mail.x", "orders", "orders.closed", "delay.1s.orders.x", "delaysys.hop.1s.timer", "delaydead.x.y", "$JS.API.INFO",
			"$SYS.REQ.USER.INFO", "_INBOX.x.y", "delayctl.timers", "schedules.orders.y", "schedules.mail.y", "orders.open.*",
		} {
			if seq, code := c.Schedule("schedules.orders.x", target, soon, "bad"); code != 10190 {
				t.Errorf("the answer to a request for %s is %d, %d, want 10190", target, seq, code)
			}
		}
		if seq, code := c.Schedule("schedules.mail.x", "mail.x", soon, "good"); seq == 0 {
			t.Fatalf("the answer is %d", code)
		}
		for _, m := range []*nats.Msg{
			harness.NewMsg("schedules.orders.x", "", "Nats-Scheduler", "schedules.mail.x", "Nats-Schedule-Next", "purge"),
			harness.NewMsg("schedules.orders.x", "", "Nats-Scheduler", "schedules.mail.*", "Nats-Schedule-Next", "purge"),
			harness.NewMsg("schedules.orders.x", "", "Nats-Scheduler", "mail.x", "Nats-Schedule-Next", "purge"),
		} {
			if seq, code := c.TrySchedule(m); code != 10212 {
				t.Errorf("the answer to a request to end %s is %d, %d, want 10212", m.Header.Get("Nats-Scheduler"), seq, code)
			}
		}
		// If the broker stored one of these headers, its seal would make the header valid.
		for _, name := range []string{
			"Delay-Target", "delay-target", "Delay-Fired", "Delay-Over", "Delay-Cancel", "Delay-Timer", "Delay-Seal", "Delay-Id",
			"Delay-Series", "Delay-First", "Delay-Every", "Delay-For", "Delay-Until", "Delay-Rollup", "Delay-Scheduler",
			"DELAY-WORD", "Delay-Owner", "Delay-Whatever", "Delay-Hop", "Delay-Format",
		} {
			if seq, code := c.Schedule("schedules.orders.x", "orders.open.x", soon, "bad", name, "1"); code != 10077 {
				t.Errorf("the answer to a request with %s is %d, %d, want 10077", name, seq, code)
			}
		}
		time.Sleep(10 * time.Minute)
		var wrong []string
		for _, a := range in.Arrivals() {
			if a.Body == "bad" && !strings.HasPrefix(a.Subject, "schedules.") {
				wrong = append(wrong, a.Subject)
			}
		}
		if len(wrong) > 0 {
			t.Errorf("refused messages arrived on %q", wrong)
		}
		c.CheckNoDead()
	})
}

// TestForgedSchedules: the entry of a schedule has the target, so the broker believes only its own entries. It believes
// no entry of a client, and no copy of an entry with another subject, body or target.
func TestForgedSchedules(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("*.x")
		soon := time.Now().Add(time.Minute)
		c.Schedule("schedules.orders.a", "orders.x", harness.AtExpression(soon), "good")
		entry := c.LastEntry("delaytimer._schedule.schedules.orders.a")
		const root = "delaytimer._schedule.schedules.orders."
		c.Publish(root+"b", "bad", "Delay-Target", "mail.x", "Delay-Until", soon.Format(time.RFC3339Nano))
		c.Publish(root+"c", "bad", "Delay-Target", "mail.x", "Delay-For", "1m", "Delay-Seal",
			"AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA")
		for _, copied := range []struct{ subject, body, target string }{
			{root + "d", "good", "orders.x"}, {root + "a", "bad", "orders.x"}, {root + "e", "good", "mail.x"},
		} {
			m := &nats.Msg{Subject: copied.subject, Data: []byte(copied.body), Header: harness.WrittenHeaders(entry.Header)}
			m.Header.Set("Delay-Target", copied.target)
			if _, err := c.JS.PublishMsg(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		c.Publish(root+"f", "", "Delay-Cancel", "by a client")
		time.Sleep(10 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "")
		dead := c.DeadLetters()
		if got := len(dead["bad_timer"]); got != 6 || len(dead) != 1 {
			t.Errorf("%d dead letters bad_timer, codes %v; want 6, and no other code", got, dead)
		}
		// The forgeries replaced the broker's entry, but the client can request the schedule again.
		again := harness.AtExpression(time.Now().Add(time.Minute))
		if _, code := c.Schedule("schedules.orders.a", "orders.x", again, "again"); code != 0 {
			t.Errorf("the answer is %d", code)
		}
		time.Sleep(2 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "again")
	})
}

// TestRelayedScheduleRequests: NATS checks no permission for reply subjects, and a client may choose the headers of an
// answer. No redirected answer counts as a request. The broker ignores requests whose reply subject is not in an inbox,
// because the answer could be a request there.
func TestRelayedScheduleRequests(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		in, requests := c.Subscribe("orders.>"), c.Subscribe("delay.>")
		c.Create(jetstream.StreamConfig{Name: "EVIL", Subjects: []string{"evil.>"}, AllowDirect: true,
			AllowMsgSchedules: true})
		soon := harness.AtExpression(time.Now().Add(time.Minute))
		c.Publish("evil.a", "evil", "Nats-Schedule", harness.AtExpression(time.Now().Add(time.Hour)),
			"Nats-Schedule-Target", "evil.x",
			"X", "1") // with these headers, a message on a schedule's subject is a request
		natstest.NoError(t, c.NC.PublishMsg(&nats.Msg{Subject: "$JS.API.DIRECT.GET.EVIL", Reply: "schedules.orders.a",
			Data: []byte(`{"last_by_subj":"evil.a"}`)}))
		natstest.NoError(t, c.NC.PublishMsg(&nats.Msg{Subject: "evil.b", Reply: "schedules.orders.b"}))
		if _, err := c.JS.CreateOrUpdatePushConsumer(context.Background(), "EVIL", jetstream.ConsumerConfig{
			Durable: "evil", DeliverSubject: "schedules.orders.c", AckPolicy: jetstream.AckExplicitPolicy,
		}); err != nil {
			t.Fatal(err)
		}
		for _, reply := range []string{"", "delay.1s.orders.x", "orders.x", "$JS.ACK.x", "$JS.API.STREAM.PURGE.EVIL",
			"_INBOX", "_INBOX.*"} {
			m := harness.NewMsg("schedules.orders.d", "bad", "Nats-Schedule", soon, "Nats-Schedule-Target", "orders.x")
			m.Reply = reply
			if err := c.NC.PublishMsg(m); err != nil && !strings.Contains(err.Error(), "invalid") {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		if a, b := harness.Bodies(in.Arrivals()), harness.Bodies(requests.Arrivals()); a != "" || b != "" {
			t.Errorf("%q arrived at the target, and %q arrived as requests at the broker", a, b)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if last := c.LastEntry("delaytimer._schedule.schedules.orders." + name); last != nil {
				t.Errorf("schedule %s has the entry %+v, want none", name, last)
			}
		}
	})
}
