package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file is about schedules in the server's dialect (DELAY_SCHEDULES). What is answered to which request, beside the
// server's own answers, is in test/schedules.

// post publishes a request whose answer goes to its reply subject.
func post(c *harness.Client, m *nats.Msg) {
	c.T.Helper()
	if err := c.NC.PublishMsg(m); err != nil {
		c.T.Fatalf("publish on %s: %v", m.Subject, err)
	}
}

// TestScheduleByItsClient: what an unmodified nats.go asks for with its own options arrives in any stream or at core
// subscribers, to the nanosecond, with what a schedule's message has.
func TestScheduleByItsClient(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Create(jetstream.StreamConfig{Name: "MAIL", Subjects: []string{"mail.>"}, AllowMsgTTL: true, AllowRollup: true})
		c.Publish("mail.a", "before")
		due := time.Now().Truncate(time.Second).Add(10 * time.Minute)
		for subject, target := range map[string]string{"schedules.orders.x": "orders.x", "schedules.mail.x": "mail.a"} {
			m := harness.NewMsg(subject, "hi", "Order", "42")
			ack, err := c.JS.PublishMsg(context.Background(), m, jetstream.WithScheduleAt(due),
				jetstream.WithScheduleTarget(target), jetstream.WithScheduleTTL(time.Hour), jetstream.WithScheduleRollup())
			if err != nil || ack.Stream != "DELAY_TIMERS" || ack.Sequence == 0 {
				t.Fatalf("the answer is %+v, %v", ack, err)
			}
		}
		exact := due.Add(123456789 * time.Nanosecond)
		c.Schedule("schedules.orders.y", "orders.y", harness.At(exact), "to the nanosecond")
		harness.CheckExactly(t, in, due, 0)
		harness.CheckExactly(t, in, exact, 1)
		all := c.Arrivals("MAIL")
		if len(all) != 1 || !all[0].At.Equal(due) || all[0].Body != "hi" {
			t.Fatalf("in the stream is %+v, want one at %s, which has rolled up the other", all, due)
		}
		for name, want := range map[string]string{
			"Order": "42", "Nats-TTL": "3600", "Nats-Rollup": "sub", "Delay-Scheduler": "schedules.mail.x",
			"Delay-Schedule-Next": "purge", "Nats-Msg-Id": all[0].ID, "Delay-Target": "", "Delay-Seal": "", "Delay-Word": "",
		} {
			if got := strings.Join(all[0].Header[name], ","); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		c.CheckNoDead()
		time.Sleep(10 * time.Minute)
		c.CheckNoTimers()
	})
}

// TestSchedulerHeadersStayHome: what a message of the server's scheduler says of itself no other stream takes, whether
// it allows schedules or not. So ours says it in headers of its own.
func TestSchedulerHeadersStayHome(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		c.Target("PLAIN", "plain.>")
		c.Create(jetstream.StreamConfig{Name: "PLAN", Subjects: []string{"plan.>"}, AllowMsgSchedules: true})
		for _, tt := range []struct {
			subject, next string
			code          jetstream.ErrorCode
		}{
			{"plain.x", "purge", 10188}, {"plain.x", "2000-01-01T00:00:05Z", 10212}, {"plan.x", "2000-01-01T00:00:05Z", 10212},
		} {
			m := harness.NewMsg(tt.subject, "", "Nats-Scheduler", "schedules.a", "Nats-Schedule-Next", tt.next)
			_, err := c.JS.PublishMsg(context.Background(), m)
			if api := (*jetstream.APIError)(nil); !errors.As(err, &api) || api.ErrorCode != tt.code {
				t.Errorf("%s with %s: %v, want %d", tt.subject, tt.next, err, tt.code)
			}
		}
	})
}

// TestScheduleOnItsWay: a refused delivery of a schedule is tried again as any, with all that it has; and after the
// last time its dead letter says where it came from.
func TestScheduleOnItsWay(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.SchedulesOn(t)
		cfg.Attempts = 3
		harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		start := time.Now()
		c.Schedule("schedules.mail.x", "mail.x", harness.At(start.Add(time.Minute)), "late", "Nats-Schedule-Rollup", "sub")
		c.Schedule("schedules.orders.x", "orders.x", harness.At(start.Add(time.Minute)), "never")
		time.Sleep(61 * time.Second)
		c.Create(jetstream.StreamConfig{Name: "MAIL", Subjects: []string{"mail.>"}, AllowRollup: true})
		time.Sleep(time.Minute)
		all := c.Arrivals("MAIL")
		if len(all) != 1 || all[0].Header.Get("Nats-Rollup") != "sub" || all[0].Header.Get("Delay-Attempts") == "" ||
			all[0].Header.Get("Delay-Scheduler") != "schedules.mail.x" {
			t.Errorf("after refusals came %+v", all)
		}
		letters := c.Dead()["undelivered"]
		if len(letters) != 1 || letters[0].Subject != "delaydead.undelivered.orders.x" ||
			letters[0].Header.Get("Delay-Subject") != "delaytimer._schedule.schedules.orders.x" {
			t.Errorf("the dead letters are %+v", letters)
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestScheduleOfADeadInstance: an instance that dies between the firing and its delivery leaves it to the next, which
// finds the target in the entry.
func TestScheduleOfADeadInstance(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.SchedulesOn(t)
		first := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		due := time.Now().Add(time.Hour)
		c.Schedule("schedules.orders.x", "orders.x", harness.At(due), "hi", "Order", "42")
		time.Sleep(time.Minute)
		first.Stop()
		time.Sleep(time.Until(due))
		c.Fire("delaytimer._schedule.schedules.orders.x", "ghost")
		harness.StartBroker(t, s, cfg)
		time.Sleep(time.Minute)
		got := in.All()
		if len(got) != 1 || got[0].Body != "hi" || got[0].Subject != "orders.x" || !got[0].Due.Equal(due) ||
			got[0].Header.Get("Order") != "42" || got[0].Header.Get("Delay-Scheduler") != "schedules.orders.x" {
			t.Errorf("there came %+v, want it once, with its headers", got)
		}
		c.CheckNoTimers()
	})
}

// TestScheduleThatRepeats: each occurrence comes once, whichever instance dies, and says when the next is; the same
// request again within two minutes is no other schedule, however many rounds have fired; and who knows only the
// sequence of his acknowledgement can still replace it by that.
func TestScheduleThatRepeats(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.SchedulesOn(t)
		cfg.MaxOwners = 2
		first := harness.StartBroker(t, s, cfg)
		harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>") // stores a copy under one id once
		start := time.Now()
		ask := func(headers ...string) (uint64, jetstream.ErrorCode) {
			return c.Schedule("schedules.orders.a", "orders.a", "@every 10s", "hi", headers...)
		}
		g, _ := ask("Nats-Msg-Id", "1", "Nats-TTL", "10m")
		time.Sleep(35 * time.Second)
		if again, _ := ask("Nats-Msg-Id", "1"); again != g {
			t.Errorf("under one id, three rounds later, the answers are %d and %d", g, again)
		}
		time.Sleep(time.Until(start.Add(61 * time.Second)))
		first.Crash()
		time.Sleep(time.Until(start.Add(205 * time.Second)))
		harness.StartBroker(t, s, cfg)
		time.Sleep(time.Until(start.Add(11 * time.Minute)))
		var got []harness.Arrival
		for _, a := range c.Arrivals("ORDERS") {
			if a.Subject == "orders.a" {
				got = append(got, a)
			}
		}
		if len(got) != 60 {
			t.Fatalf("there came %d rounds in ten minutes, want 60", len(got))
		}
		for i, a := range got {
			due := start.Add(time.Duration(i+1) * 10 * time.Second)
			next := due.Add(10 * time.Second).UTC().Format(time.RFC3339Nano)
			if i == 59 {
				next = "purge"
			}
			if late := a.At.Sub(a.Due); !a.Due.Equal(due) || late < 0 || late > 6*time.Second ||
				a.Header.Get("Delay-Schedule-Next") != next {
				t.Errorf("round %d came at %s, due %s, next %s; want %s and %s", i+1, a.At, a.Due,
					a.Header.Get("Delay-Schedule-Next"), due, next)
			}
		}
		// Over. Another one, replaced by the sequence of its acknowledgement.
		g, _ = c.Schedule("schedules.orders.c", "orders.c", "@every 10s", "c")
		time.Sleep(25 * time.Second)
		const expected = "Nats-Expected-Last-Subject-Sequence"
		if _, code := c.Schedule("schedules.orders.c", "orders.c", "@every 1m", "d", expected,
			fmt.Sprint(g+1)); code != 10071 {
			t.Errorf("expecting another one the answer is %d", code)
		}
		if seq, code := c.Schedule("schedules.orders.c", "orders.c", "@every 1m", "d", expected, fmt.Sprint(g)); seq <= g {
			t.Errorf("expecting it the answer is %d, %d", seq, code)
		}
		time.Sleep(61 * time.Second)
		var last []string
		for _, a := range c.Arrivals("ORDERS") {
			if a.Subject == "orders.c" {
				last = append(last, a.Body)
			}
		}
		if strings.Join(last, "") != "ccd" {
			t.Errorf("there came %q", last)
		}
	})
}

// TestScheduleAnsweredOnce: of two instances one answers each request.
func TestScheduleAnsweredOnce(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.SchedulesOn(t)
		cfg.MaxOwners = 2
		harness.StartBroker(t, s, cfg)
		harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in, answers := c.Subscribe("orders.>"), c.Subscribe("_INBOX.me.>")
		for i := range 20 {
			m := harness.NewMsg(fmt.Sprintf("schedules.orders.%d", i), fmt.Sprint(i),
				"Nats-Schedule", harness.At(time.Now().Add(time.Minute)), "Nats-Schedule-Target", "orders.x")
			m.Reply = fmt.Sprintf("_INBOX.me.%d", i)
			post(c, m)
		}
		time.Sleep(2 * time.Minute)
		if a, n := len(answers.All()), len(in.All()); a != 20 || n != 20 {
			t.Errorf("%d answers and %d messages to 20 requests", a, n)
		}
	})
}

// TestScheduleOfAnother: who may ask on some subjects reaches the targets that belong to them, ends schedules there,
// and nothing else.
func TestScheduleOfAnother(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.SchedulesOn(t)
		cfg.Targets = []string{"orders.open.>", "mail.>"}
		harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe(">")
		soon := harness.At(time.Now().Add(time.Minute))
		for _, target := range []string{
			"mail.x", "orders", "orders.closed", "delay.1s.orders.x", "delaysys.hop.1s.timer", "delaydead.x.y", "$JS.API.INFO",
			"$SYS.REQ.USER.INFO", "_INBOX.x.y", "delayctl.timers", "schedules.orders.y", "schedules.mail.y", "orders.open.*",
		} {
			if seq, code := c.Schedule("schedules.orders.x", target, soon, "bad"); code != 10190 {
				t.Errorf("for %s the answer is %d, %d, want 10190", target, seq, code)
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
			if seq, code := c.Plan(m); code != 10212 {
				t.Errorf("to end %s the answer is %d, %d, want 10212", m.Header.Get("Nats-Scheduler"), seq, code)
			}
		}
		// The broker's seal would make these headers true.
		for _, name := range []string{
			"Delay-Target", "delay-target", "Delay-Fired", "Delay-Over", "Delay-Cancel", "Delay-Timer", "Delay-Seal", "Delay-Id",
			"Delay-Series", "Delay-First", "Delay-Every", "Delay-For", "Delay-Until", "Delay-Rollup", "Delay-Scheduler",
			"DELAY-WORD", "Delay-Owner", "Delay-Whatever", "Delay-Hop", "Delay-Format",
		} {
			if seq, code := c.Schedule("schedules.orders.x", "orders.open.x", soon, "bad", name, "1"); code != 10077 {
				t.Errorf("with %s the answer is %d, %d, want 10077", name, seq, code)
			}
		}
		time.Sleep(10 * time.Minute)
		var came []string
		for _, a := range in.All() {
			if a.Body == "bad" && !strings.HasPrefix(a.Subject, "schedules.") {
				came = append(came, a.Subject)
			}
		}
		if len(came) > 0 {
			t.Errorf("what was refused came on %q", came)
		}
		c.CheckNoDead()
	})
}

// TestForgedSchedules: an entry of a schedule names its target, so nobody else's is believed: not one that a client
// publishes there, not a true one on another subject or of another body, and no answer that the server puts there.
func TestForgedSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("*.x")
		soon := time.Now().Add(time.Minute)
		c.Schedule("schedules.orders.a", "orders.x", harness.At(soon), "good")
		entry := c.Last("delaytimer._schedule.schedules.orders.a")
		const root = "delaytimer._schedule.schedules.orders."
		c.Publish(root+"b", "bad", "Delay-Target", "mail.x", "Delay-Until", soon.Format(time.RFC3339Nano))
		c.Publish(root+"c", "bad", "Delay-Target", "mail.x", "Delay-For", "1m", "Delay-Seal",
			"AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA")
		for _, copied := range []struct{ subject, body, target string }{
			{root + "d", "good", "orders.x"}, {root + "a", "bad", "orders.x"}, {root + "e", "good", "mail.x"},
		} {
			m := &nats.Msg{Subject: copied.subject, Data: []byte(copied.body), Header: harness.AsWritten(entry.Header)}
			m.Header.Set("Delay-Target", copied.target)
			if _, err := c.JS.PublishMsg(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		c.Publish(root+"f", "", "Delay-Cancel", "by a client")
		time.Sleep(10 * time.Minute)
		if got := harness.Bodies(in.All()); got != "" {
			t.Errorf("there came %q", got)
		}
		dead := c.Dead()
		if got := len(dead["bad_timer"]); got != 6 || len(dead) != 1 {
			t.Errorf("%d dead letters bad_timer, codes %v; want 6, and no others", got, dead)
		}
		// The true one was replaced. That is said; it can be asked for again.
		again := harness.At(time.Now().Add(time.Minute))
		if _, code := c.Schedule("schedules.orders.a", "orders.x", again, "again"); code != 0 {
			t.Errorf("the answer is %d", code)
		}
		time.Sleep(2 * time.Minute)
		if got := harness.Bodies(in.All()); got != "again" {
			t.Errorf("there came %q", got)
		}
	})
}

// TestRelayedScheduleRequests: NATS checks no permission for where an answer goes, and answers may have headers of
// somebody's choice. None is taken for a request, and none of ours goes where somebody acts on it.
func TestRelayedScheduleRequests(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in, acted := c.Subscribe("orders.>"), c.Subscribe("delay.>")
		c.Create(jetstream.StreamConfig{Name: "EVIL", Subjects: []string{"evil.>"}, AllowDirect: true,
			AllowMsgSchedules: true})
		soon := harness.At(time.Now().Add(time.Minute))
		c.Publish("evil.a", "evil", "Nats-Schedule", harness.At(time.Now().Add(time.Hour)), "Nats-Schedule-Target", "evil.x",
			"X", "1") // its headers, put on our subjects, would be a request
		post(c, &nats.Msg{Subject: "$JS.API.DIRECT.GET.EVIL", Reply: "schedules.orders.a",
			Data: []byte(`{"last_by_subj":"evil.a"}`)})
		post(c, &nats.Msg{Subject: "evil.b", Reply: "schedules.orders.b"}) // an acknowledgement there would cancel
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
		if a, b := harness.Bodies(in.All()), harness.Bodies(acted.All()); a != "" || b != "" {
			t.Errorf("there came %q, and %q to the broker itself", a, b)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if last := c.Last("delaytimer._schedule.schedules.orders." + name); last != nil {
				t.Errorf("stored for %s: %+v", name, last)
			}
		}
	})
}

// TestScheduleStoredBeforeItsAnswer: an answer says that it is stored. Where an acknowledgement was lost, that is
// looked up; where nothing can tell, there is none.
func TestScheduleStoredBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		soon := harness.At(time.Now().Add(time.Minute))
		change := func(edit func(*jetstream.StreamConfig)) { c.Reconfigure("DELAY_TIMERS", edit) }
		c.Schedule("schedules.orders.z", "orders.x", harness.At(time.Now().Add(time.Hour)), "another")
		change(func(cfg *jetstream.StreamConfig) { cfg.NoAck = true })
		seq, code := c.Schedule("schedules.orders.a", "orders.x", soon, "found")
		if last := c.Last("delaytimer._schedule.schedules.orders.a"); last == nil || last.Sequence != seq {
			t.Fatalf("the answer is %d, %d, and stored is %+v", seq, code, last)
		}
		again, _ := c.Schedule("schedules.orders.b", "orders.x", soon, "once", "Nats-Msg-Id", "1")
		if same, _ := c.Schedule("schedules.orders.b", "orders.x", soon, "twice", "Nats-Msg-Id",
			"1"); same != again || same == 0 {
			t.Errorf("under one id the answers are %d and %d", again, same)
		}
		change(func(cfg *jetstream.StreamConfig) { cfg.NoAck = false; cfg.Subjects = []string{"delaysys.armed"} })
		if seq, code = c.Schedule("schedules.orders.c", "orders.x", soon, "lost"); seq != 0 || code != 0 {
			t.Errorf("nobody has stored it, and the answer is %d, %d", seq, code)
		}
		change(func(cfg *jetstream.StreamConfig) {
			cfg.Subjects = append(cfg.Subjects, "delaytimer.*.>")
			cfg.MaxMsgs = 1
		})
		if _, code = c.Schedule("schedules.orders.c", "orders.x", soon, "refused"); code != 10077 {
			t.Errorf("the stream refuses it with 10077, and the answer is %d", code)
		}
		change(func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = -1 })
		time.Sleep(2 * time.Minute)
		if got := harness.Bodies(in.All()); got != "found once" {
			t.Errorf("there came %q", got)
		}
	})
}

// TestSchedulesFlood: beyond what may wait, a request is told so at once, and nothing of it is stored.
func TestSchedulesFlood(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		answers := c.Subscribe("_INBOX.me")
		due := harness.At(time.Now().Add(time.Hour))
		const n = 400
		for i := range n { // all on one subject, so that one worker has them
			m := harness.NewMsg("schedules.orders.a", fmt.Sprint(i), "Nats-Schedule", due, "Nats-Schedule-Target", "orders.x")
			m.Reply = "_INBOX.me"
			post(c, m)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		stored := make(map[uint64]bool)
		refused := 0
		for _, a := range answers.All() {
			var said struct {
				Seq   uint64
				Error *jetstream.APIError
			}
			if err := json.Unmarshal([]byte(a.Body), &said); err != nil {
				t.Fatal(err)
			}
			switch {
			case said.Error == nil:
				stored[said.Seq] = true
			case said.Error.ErrorCode == 10167:
				refused++
			default:
				t.Errorf("refused: %s", a.Body)
			}
		}
		if len(stored)+refused != n || len(stored) == 0 {
			t.Errorf("%d stored and %d refused of %d", len(stored), refused, n)
		}
	})
}
