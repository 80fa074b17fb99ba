package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests schedules in the server's format (DELAY_SCHEDULES). schedules_test.go compares the answers to
// requests with the server's.

// TestScheduleByNATSClient: an unmodified nats.go requests schedules with its own options. Their messages arrive
// exactly on time in a stream and at a core subscriber, with all headers of a schedule's message. A time with
// nanoseconds is kept too.
func TestScheduleByNATSClient(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
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
		c.Schedule("schedules.orders.y", "orders.y", harness.AtExpression(exact), "to the nanosecond")
		harness.CheckExactly(t, in, due, 0)
		harness.CheckExactly(t, in, exact, 1)
		all := c.Arrivals("MAIL")
		if len(all) != 1 || !all[0].At.Equal(due) || all[0].Body != "hi" {
			t.Fatalf("the stream has %+v, want one message at %s, which has replaced the earlier message", all, due)
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

// TestSchedulerHeadersAreRefused: a plain stream refuses a message with the headers that the server's scheduler adds. A
// stream that allows schedules also refuses the message if Nats-Schedule-Next is a time. So the broker adds headers
// with other names.
func TestSchedulerHeadersAreRefused(t *testing.T) {
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

// TestScheduleIsRetried: the broker retries a refused delivery of a schedule with all headers. After the last attempt,
// the dead letter names the schedule.
func TestScheduleIsRetried(t *testing.T) {
	t.Parallel()
	cfg := harness.ScheduleConfig(t)
	cfg.Attempts = 3
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		start := time.Now()
		c.Schedule("schedules.mail.x", "mail.x", harness.AtExpression(start.Add(time.Minute)), "late",
			"Nats-Schedule-Rollup", "sub")
		c.Schedule("schedules.orders.x", "orders.x", harness.AtExpression(start.Add(time.Minute)), "never")
		time.Sleep(61 * time.Second)
		c.Create(jetstream.StreamConfig{Name: "MAIL", Subjects: []string{"mail.>"}, AllowRollup: true})
		time.Sleep(time.Minute)
		all := c.Arrivals("MAIL")
		if len(all) != 1 || all[0].Header.Get("Nats-Rollup") != "sub" || all[0].Header.Get("Delay-Attempts") == "" ||
			all[0].Header.Get("Delay-Scheduler") != "schedules.mail.x" {
			t.Errorf("after refusals arrived %+v", all)
		}
		letters := c.DeadLetters()["undelivered"]
		if len(letters) != 1 || letters[0].Subject != "delaydead.undelivered.orders.x" ||
			letters[0].Header.Get("Delay-Subject") != "delaytimer._schedule.schedules.orders.x" {
			t.Errorf("the dead letters are %+v", letters)
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestScheduleOfADeadInstance: an instance crashes between the firing of a schedule and the delivery. The next owner
// reads the target in the entry, and delivers the message.
func TestScheduleOfADeadInstance(t *testing.T) {
	t.Parallel()
	cfg := harness.ScheduleConfig(t)
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, first *harness.Instance) {
		in := c.Subscribe("orders.>")
		due := time.Now().Add(time.Hour)
		c.Schedule("schedules.orders.x", "orders.x", harness.AtExpression(due), "hi", "Order", "42")
		time.Sleep(time.Minute)
		first.Stop()
		time.Sleep(time.Until(due))
		c.Fire("delaytimer._schedule.schedules.orders.x", "ghost")
		first.Replace()
		time.Sleep(time.Minute)
		got := in.Arrivals()
		if len(got) != 1 || got[0].Body != "hi" || got[0].Subject != "orders.x" || !got[0].Due.Equal(due) ||
			got[0].Header.Get("Order") != "42" || got[0].Header.Get("Delay-Scheduler") != "schedules.orders.x" {
			t.Errorf("%+v arrived, want one message with the headers of the schedule", got)
		}
		c.CheckNoTimers()
	})
}

// TestScheduleThatRepeats: each occurrence arrives once, with the time of the next occurrence, even if an instance
// crashes. A second request with the same id makes no second schedule, even if occurrences have fired. A client that
// has only the sequence of its acknowledgement can still replace the schedule.
func TestScheduleThatRepeats(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.ScheduleConfig(t)
		cfg.Leaser = harness.Together
		first := harness.StartBroker(t, s, cfg)
		c := harness.StartBroker(t, s, cfg).NewClient()
		c.Target("ORDERS", "orders.>") // the stream drops duplicates
		start := time.Now()
		ask := func(headers ...string) (uint64, jetstream.ErrorCode) {
			return c.Schedule("schedules.orders.a", "orders.a", "@every 10s", "hi", headers...)
		}
		g, _ := ask("Nats-Msg-Id", "1", "Nats-TTL", "10m")
		time.Sleep(35 * time.Second)
		if again, _ := ask("Nats-Msg-Id", "1"); again != g {
			t.Errorf("with one id, three rounds apart, the answers are %d and %d", g, again)
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
		harness.CheckCount(t, got, 60)
		for i, a := range got {
			due := start.Add(time.Duration(i+1) * 10 * time.Second)
			next := due.Add(10 * time.Second).UTC().Format(time.RFC3339Nano)
			if i == 59 {
				next = "purge"
			}
			if late := a.At.Sub(a.Due); !a.Due.Equal(due) || late < 0 || late > 6*time.Second ||
				a.Header.Get("Delay-Schedule-Next") != next {
				t.Errorf("round %d arrived at %s, due %s, next %s; want %s and %s", i+1, a.At, a.Due,
					a.Header.Get("Delay-Schedule-Next"), due, next)
			}
		}
		// The first schedule has ended. A request that expects the sequence of the acknowledgement replaces the second
		// schedule.
		g, _ = c.Schedule("schedules.orders.c", "orders.c", "@every 10s", "c")
		time.Sleep(25 * time.Second)
		const expected = "Nats-Expected-Last-Subject-Sequence"
		if _, code := c.Schedule("schedules.orders.c", "orders.c", "@every 1m", "d", expected,
			fmt.Sprint(g+1)); code != 10071 {
			t.Errorf("the answer to a request that expects another sequence is %d", code)
		}
		if seq, code := c.Schedule("schedules.orders.c", "orders.c", "@every 1m", "d", expected, fmt.Sprint(g)); seq <= g {
			t.Errorf("the answer to a request that expects the sequence is %d, %d", seq, code)
		}
		time.Sleep(61 * time.Second)
		var last []string
		for _, a := range c.Arrivals("ORDERS") {
			if a.Subject == "orders.c" {
				last = append(last, a.Body)
			}
		}
		if strings.Join(last, "") != "ccd" {
			t.Errorf("%q arrived", last)
		}
	})
}

// TestScheduleAnsweredOnce: exactly one of two instances answers each request.
func TestScheduleAnsweredOnce(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.ScheduleConfig(t)
		cfg.Leaser = harness.Together
		harness.StartBroker(t, s, cfg)
		c := harness.StartBroker(t, s, cfg).NewClient()
		in, answers := c.Subscribe("orders.>"), c.Subscribe("_INBOX.me.>")
		for i := range 20 {
			m := harness.NewMsg(fmt.Sprintf("schedules.orders.%d", i), fmt.Sprint(i),
				"Nats-Schedule", harness.AtExpression(time.Now().Add(time.Minute)), "Nats-Schedule-Target", "orders.x")
			m.Reply = fmt.Sprintf("_INBOX.me.%d", i)
			natstest.NoError(t, c.NC.PublishMsg(m))
		}
		time.Sleep(2 * time.Minute)
		if a, n := len(answers.Arrivals()), len(in.Arrivals()); a != 20 || n != 20 {
			t.Errorf("%d answers and %d messages to 20 requests", a, n)
		}
	})
}

// TestScheduleStoredBeforeItsAnswer: the broker acknowledges only a stored schedule. If the stream's acknowledgement is
// lost, the broker reads the entry. If it does not find the entry, it does not answer.
func TestScheduleStoredBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.ScheduleConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		soon := harness.AtExpression(time.Now().Add(time.Minute))
		change := func(edit func(*jetstream.StreamConfig)) { c.Reconfigure("DELAY_TIMERS", edit) }
		c.Schedule("schedules.orders.z", "orders.x", harness.AtExpression(time.Now().Add(time.Hour)), "another")
		change(func(cfg *jetstream.StreamConfig) { cfg.NoAck = true })
		seq, code := c.Schedule("schedules.orders.a", "orders.x", soon, "found")
		if last := c.LastEntry("delaytimer._schedule.schedules.orders.a"); last == nil || last.Sequence != seq {
			t.Fatalf("the answer is %d, %d, and the stored entry is %+v", seq, code, last)
		}
		again, _ := c.Schedule("schedules.orders.b", "orders.x", soon, "once", "Nats-Msg-Id", "1")
		if same, _ := c.Schedule("schedules.orders.b", "orders.x", soon, "twice", "Nats-Msg-Id",
			"1"); same != again || same == 0 {
			t.Errorf("with one id the answers are %d and %d", again, same)
		}
		change(func(cfg *jetstream.StreamConfig) { cfg.NoAck = false; cfg.Subjects = []string{"delaysys.armed"} })
		if seq, code = c.Schedule("schedules.orders.c", "orders.x", soon, "lost"); seq != 0 || code != 0 {
			t.Errorf("the stream did not store the request, but the answer is %d, %d", seq, code)
		}
		change(func(cfg *jetstream.StreamConfig) {
			cfg.Subjects = append(cfg.Subjects, "delaytimer.*.>")
			cfg.MaxMsgs = 1
		})
		if _, code = c.Schedule("schedules.orders.c", "orders.x", soon, "refused"); code != 10077 {
			t.Errorf("the stream refused the request with 10077, but the answer is %d", code)
		}
		change(func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = -1 })
		time.Sleep(2 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "found once")
	})
}
