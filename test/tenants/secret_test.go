package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/pause"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

const (
	secretA = "the first secret of the tests"
	secretB = "the second secret of the tests"
)

// withSecrets returns the configuration with some secrets.
func withSecrets(cfg broker.Config, secrets ...string) broker.Config {
	cfg.Secrets = secrets
	return cfg
}

// operatorWith returns an operator with some secrets.
func operatorWith(t testing.TB, s *natstest.Server, secrets ...string) *inspect.Inspector {
	t.Helper()
	i, err := inspect.Open(s.Connect(), broker.Config{Leaser: harness.Together, Timers: true, Secrets: secrets})
	natstest.NoError(t, err)
	return i
}

// sealFindings returns the findings of doctor about seals.
func sealFindings(t testing.TB, i *inspect.Inspector) string {
	t.Helper()
	var findings []string
	for _, f := range doctor.Gather(context.Background(), i, doctor.Host{}, nil).Findings() {
		if f.Check == "seal" {
			findings = append(findings, f.Severity.String()+": "+f.Detail)
		}
	}
	return strings.Join(findings, "\n")
}

// TestSecretIsChanged: while an operator changes the secret as documented, pauses stay, and series and schedules fire
// on time, even if their entries are older than the change. A request that expects a series' generation from before the
// change gets the outcome conflict.
func TestSecretIsChanged(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.ScheduleConfig(t)
		cfg.Ladder = harness.Ladder(t, "1s 10s 1m 10m")
		b := harness.StartBroker(t, s, withSecrets(cfg, secretA))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		c.SetSecrets(secretA)
		const day = 40 * time.Minute // longer than all levels
		start, in := time.Now(), make(map[string]*harness.Inbox)
		for _, target := range []string{"daily", "moved", "paused", "once", "rare", "plain"} {
			in[target] = c.Subscribe("orders." + target)
		}
		parked, news := c.Subscribe("mail.>"), c.Subscribe("news.>")
		series := make(map[string]uint64)
		for _, key := range []string{"daily", "moved", "paused"} {
			series[key] = c.Publish("delaytimer.k.orders."+key, key, "Delay-Every", "40m",
				"Delay-Missed-Rounds", "skip").Sequence
		}
		of := func(verb timer.Verb, key string) timer.Verdict {
			w := harness.NewChange(verb, "k", 0)
			if w.Target = "orders." + key; verb == timer.Move {
				w.For = "50m"
			}
			a := c.Do(w)
			return timer.Verdict{Outcome: a.Outcome, Generation: a.Generation, Due: a.Due}
		}
		c.Schedule("schedules.orders.once", "orders.once", harness.AtExpression(start.Add(70*time.Minute)), "once")
		c.Schedule("schedules.orders.rare", "orders.rare", "@every 2h", "rare")
		c.Publish("delayin.35m.orders.plain", "plain")
		time.Sleep(time.Second)
		moved, pausedAs := of(timer.Move, "moved"), of(timer.Pause, "paused")
		operator := operatorWith(t, s, secretA)
		harness.MustPause(t, operator, "mail.>")
		harness.MustPause(t, operator, "news.>")
		stranger := operatorWith(t, s, secretB)
		if _, err := stranger.Pause(context.Background(), "more.>", pause.Hours{}); !errors.Is(err, inspect.ErrUnopened) {
			t.Errorf("a pause without the secret of the list: %v, want %v", err, inspect.ErrUnopened)
		}
		if _, err := stranger.Pauses(context.Background()); !errors.Is(err, inspect.ErrUnopened) {
			t.Errorf("the pauses, read without the secret of the list: %v, want %v", err, inspect.ErrUnopened)
		}
		c.Publish("delay.1s.mail.x", "parked")
		time.Sleep(day + 2*time.Minute) // the broker has sealed the second round of daily
		change := func(secrets ...string) {
			t.Helper()
			b.Stop()
			b = harness.StartBroker(t, s, withSecrets(cfg, secrets...))
			time.Sleep(time.Minute)
		}
		change(secretA, secretB)
		if now := of(timer.Get, "moved"); now != (timer.Verdict{
			Outcome: timer.Pending, Generation: moved.Generation, Due: moved.Due,
		}) {
			t.Errorf("with the new secret after the old secret, the moved series is %+v, want no change: %+v", now, moved)
		}
		change(secretB, secretA)
		c.SetSecrets(secretB, secretA)
		if now := of(timer.Get, "moved"); now.Generation <= moved.Generation || !now.Due.Equal(moved.Due) {
			t.Errorf("the resealed series is %+v, want a later generation than %d, due %s", now, moved.Generation,
				moved.Due)
		}
		held := harness.NewChange(timer.Cancel, "k", pausedAs.Generation)
		held.Target = "orders.paused"
		c.Check(held, timer.Conflict, of(timer.Get, "paused").Generation)
		operator = operatorWith(t, s, secretB, secretA)
		findings := sealFindings(t, operator)
		if !strings.Contains(findings, "in DELAY_SECRET: it is the key of ") ||
			!strings.Contains(findings, "1 message of DELAY_PAUSED (resume the targets)") ||
			strings.Contains(findings, "DELAY_TIMERS") || strings.Contains(findings, secretA) {
			t.Errorf("doctor says %s", findings)
		}
		harness.MustResume(t, operator, "mail.>") // waiting messages keep their old seal
		time.Sleep(20 * time.Minute)              // then hopping messages are in their next level
		if findings := sealFindings(t, operator); !strings.Contains(findings, "ok: key 2 (") ||
			!strings.Contains(findings, ") seals nothing: if it is new, put it first in DELAY_SECRET (step 2") {
			t.Errorf("doctor says %s", findings)
		}
		change(secretB)
		c.SetSecrets(secretB)
		operator = operatorWith(t, s, secretB)
		c.Publish("delay.1s.news.x", "news")
		time.Sleep(time.Minute)
		harness.CheckBodies(t, news.Arrivals(), "")
		harness.MustResume(t, operator, "news.>")
		resumed := of(timer.Resume, "paused")
		if resumed.Outcome != timer.Pending {
			t.Errorf("with only the new secret, the resume of the paused series returns %+v", resumed)
		}
		time.Sleep(time.Until(start.Add(4*day + 7*time.Minute)))
		synctest.Wait()
		if got := harness.Bodies(parked.Arrivals()) + " " + harness.Bodies(news.Arrivals()); got != "parked news" {
			t.Errorf("%q arrived for the paused targets", got)
		}
		in["daily"].CheckRounds(t, series["daily"], start, harness.RoundTimes(day, day, 4)...)
		rounds := append([]time.Duration{moved.Due.Sub(start)}, harness.RoundTimes(2*day, day, 3)...)
		in["moved"].CheckRounds(t, series["moved"], start, rounds...)
		in["paused"].CheckRounds(t, series["paused"], start, harness.RoundTimes(2*day, day, 3)...)
		for name, after := range map[string]time.Duration{"once": 70 * time.Minute, "rare": 2 * time.Hour,
			"plain": 35 * time.Minute} {
			if all := in[name].Arrivals(); len(all) != 1 || all[0].Body != name ||
				all[0].At.Sub(start).Round(time.Second) != after {
				t.Errorf("%s arrived as %+v, want once after %s", name, all, after)
			}
		}
		c.CheckNoDead()
	})
}

// TestInstancesWithOtherSecrets: an operator skips the first step of a change. So one of two instances knows only the
// old secret, and the other one only the new secret. Both are active, and each takes the other's entries for forged.
// Every message arrives at least once, and the instances do not answer each other's entries for ever.
func TestInstancesWithOtherSecrets(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), Timers: true, Log: harness.NoLog}
		first := harness.StartBroker(t, s, withSecrets(cfg, secretA))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		in := c.Subscribe("orders.>")
		const limit = 1000
		letters, flood := 0, make(chan struct{})
		natstest.Handle(t, c.NC, "delaydead.>", func(*nats.Msg) {
			if letters++; letters == limit {
				close(flood)
			}
		})
		want := make(map[string]bool)
		publish := func(subject, body string, header ...string) {
			c.Publish(subject, body, header...)
			want[body] = true
		}
		publish("delayin.70s.orders.x", "before")
		publish("delaytimer.series.orders.x", "series", "Delay-Every", "20s")
		publish("delaytimer.long.orders.x", "timer", "Delay-For", "90s")
		time.Sleep(10 * time.Second)
		second := harness.StartBroker(t, s, withSecrets(cfg, secretB))
		publish("delayin.70s.orders.x", "hop")
		publish("delayin.3s.orders.x", "short")
		publish("delaytimer.short.orders.x", "short timer", "Delay-For", "8s")
		select {
		case <-flood:
			t.Errorf("the instances have stored %d dead letters, and do not stop", limit)
		case <-time.After(3 * time.Minute):
		}
		second.Stop()
		first.Stop()
		for _, a := range in.Arrivals() {
			delete(want, a.Body)
		}
		if len(want) > 0 {
			t.Errorf("these messages did not arrive: %v", want)
		}
	})
}

// TestUnknownSecretIsReported: after a secret was removed too early, the log, doctor and the lists report the entries
// that no instance can open. The broker keeps these entries, and fires all other timers. When DELAY_SECRET has the
// secret again, all timers fire.
func TestUnknownSecretIsReported(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		b := harness.StartBroker(t, s, withSecrets(cfg, secretA))
		c := harness.NewTimerClient(harness.NewClient(t, s))
		in, held, junk := c.Subscribe("orders.>"), c.Subscribe("mail.>"), c.Subscribe("timer")
		start := time.Now()
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h", "Delay-Missed-Rounds", "skip").Sequence
		harness.MustPause(t, operatorWith(t, s, secretA), "mail.>")
		time.Sleep(90 * time.Minute)
		b.Stop()
		log := harness.NewCountingLog()
		b = harness.StartBroker(t, s, broker.Config{Ladder: cfg.Ladder, Timers: true, TimerHistory: -1,
			Secrets: []string{secretB},
			Log:     slog.New(log)})
		c.Publish("delay.1s.mail.x", "held")
		time.Sleep(time.Minute)
		c.Publish("delaytimer.lost.orders.lost", "found", "Delay-For", "30m")
		time.Sleep(time.Minute)
		for _, level := range []string{"DELAY_10m", "DELAY_1m"} {
			natstest.NoError(t, c.Stream(level).Purge(context.Background()))
		}
		time.Sleep(58 * time.Minute)
		harness.CheckCount(t, held.Arrivals(), 0)
		harness.CheckBodies(t, in.Arrivals(), "body found")
		for _, what := range []string{"timers do not fire, since they are sealed with a secret that is not set here",
			"the list of paused targets is sealed with a secret that DELAY_SECRET does not name"} {
			if log.CountPrefix(what) == 0 {
				t.Errorf("the log does not have: %s", what)
			}
		}
		o := operatorWith(t, s, secretB)
		if findings := sealFindings(t, o); !strings.Contains(findings, "critical: 1 entries of DELAY_TIMERS are sealed") {
			t.Errorf("doctor says %s", findings)
		}
		if all, err := o.Pauses(context.Background()); err != nil || len(all) != 1 || !all[0].Unproven {
			t.Errorf("the pauses are %+v, %v, want mail.>, unproven", all, err)
		}
		c.SetSecrets(secretB)
		rows := 0
		for r, err := range c.Timers.ListRecurring(context.Background(), store.Filter{}) {
			if rows++; err != nil || !r.Unopened {
				t.Errorf("the list is %+v, %v, want a marked timer", r, err)
			}
		}
		if rows != 1 {
			t.Errorf("%d rows are listed, want 1", rows)
		}
		letters, err := o.Letters(context.Background())
		natstest.NoError(t, err)
		work := letters.ResendWork(deadletter.Filter{}, deadletter.Resend{Unsealed: true, DeliverNow: true}, false)
		ctx := context.Background()
		if did, err := letters.Work(ctx, ctx, work); err != nil || len(did) != 1 || did[0].Outcome != inspect.LetterLeft ||
			!strings.Contains(did[0].Why, "marker") {
			t.Errorf("the resend returns %+v, %v, want the marker to stay", did, err)
		}
		b.Stop()
		harness.StartBroker(t, s, withSecrets(cfg, secretB, secretA))
		time.Sleep(time.Until(start.Add(250 * time.Minute)))
		synctest.Wait()
		harness.MustResume(t, operatorWith(t, s, secretB, secretA), "mail.>")
		time.Sleep(time.Minute)
		if got := harness.Bodies(held.Arrivals()); got != "held" || len(junk.Arrivals()) > 0 {
			t.Errorf("%q arrived after the resumption, and %d on the subject timer", got, len(junk.Arrivals()))
		}
		last := in.Arrivals()[len(in.Arrivals())-1]
		if last.Header.Get("Delay-Series") != fmt.Sprint(g) || last.At.Sub(start) != 4*time.Hour {
			t.Errorf("the last arrival is %+v, want a round after 4 hours", last)
		}
	})
}
