package test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

const (
	secretA = "the first secret of the tests"
	secretB = "the second secret of the tests"
)

// withSecrets is the configuration with these secrets.
func withSecrets(cfg broker.Config, secrets ...string) broker.Config {
	cfg.Secrets = secrets
	return cfg
}

// holds gives a client's requests about series these secrets.
func (c *controlled) holds(secrets ...string) {
	c.t.Helper()
	streams, err := broker.StreamsOf(broker.Config{Prefix: "delay", Secrets: secrets})
	if err == nil {
		err = streams.ReadKeys(context.Background(), c.js)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.timers.Policy = streams.Policy()
}

// operatorWith is an operator who has these secrets.
func operatorWith(t testing.TB, s *natstest.Server, secrets ...string) *inspect.Inspector {
	t.Helper()
	i, err := inspect.Open(s.Connect(), broker.Config{MaxOwners: 3, Timers: true, Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestSecretIsChanged: while the secret is changed as documented, pauses hold, and series and schedules fire at their
// times, also those that are sealed for longer than the change takes. A client that expects the generation of a series
// from before sees that another entry stands there.
func TestSecretIsChanged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := schedulesOn(t)
		b := startBroker(t, s, withSecrets(cfg, secretA))
		c := controls(newClient(t, s))
		c.holds(secretA)
		start, in := time.Now(), make(map[string]*inbox)
		for _, target := range []string{"daily", "moved", "paused", "once", "rare", "plain"} {
			in[target] = c.subscribe("orders." + target)
		}
		parked, news := c.subscribe("mail.>"), c.subscribe("news.>")
		series := make(map[string]uint64)
		for _, key := range []string{"daily", "moved", "paused"} {
			series[key] = c.publish("delaytimer.k.orders."+key, key, "Delay-Every", "24h",
				"Delay-Missed-Rounds", "skip").Sequence
		}
		of := func(verb timer.Verb, key string) timer.Answer {
			w := wish(verb, "k", 0)
			if w.Target = "orders." + key; verb == timer.Move {
				w.For = "30h"
			}
			a := c.do(w)
			return timer.Answer{Outcome: a.Outcome, Generation: a.Generation, Due: a.Due}
		}
		c.schedule("schedules.orders.once", "orders.once", at(start.Add(40*time.Hour)), "once")
		c.schedule("schedules.orders.rare", "orders.rare", "@every 72h", "rare")
		c.publish("delayin.20h.orders.plain", "plain")
		time.Sleep(time.Second)
		moved, pausedAs := of(timer.Move, "moved"), of(timer.Pause, "paused")
		operator := operatorWith(t, s, secretA)
		mustPause(t, operator, "mail.>")
		mustPause(t, operator, "news.>")
		c.publish("delay.1s.mail.x", "parked")
		time.Sleep(25 * time.Hour) // the second round of daily is sealed
		change := func(secrets ...string) {
			t.Helper()
			b.stop()
			b = startBroker(t, s, withSecrets(cfg, secrets...))
			time.Sleep(2 * time.Minute)
		}
		change(secretA, secretB)
		if now := of(timer.Get, "moved"); now != (timer.Answer{
			Outcome: timer.Pending, Generation: moved.Generation, Due: moved.Due,
		}) {
			t.Errorf("with the new secret behind the old one, the moved series is %+v, want it untouched: %+v", now, moved)
		}
		change(secretB, secretA)
		c.holds(secretB, secretA)
		if now := of(timer.Get, "moved"); now.Generation <= moved.Generation || !now.Due.Equal(moved.Due) {
			t.Errorf("sealed anew, the moved series is %+v, want a later generation than %d, due %s", now, moved.Generation,
				moved.Due)
		}
		held := wish(timer.Cancel, "k", pausedAs.Generation)
		held.Target = "orders.paused"
		c.check(held, timer.Conflict, of(timer.Get, "paused").Generation)
		mustResume(t, operatorWith(t, s, secretB, secretA), "mail.>") // what waits is not sealed anew
		time.Sleep(2 * time.Hour)                                     // what hops is in its next level by then
		change(secretB)
		c.holds(secretB)
		operator = operatorWith(t, s, secretB)
		c.publish("delay.1s.news.x", "news")
		time.Sleep(time.Minute)
		if got := bodies(news.all()); got != "" {
			t.Errorf("while news.> was paused arrived %q", got)
		}
		mustResume(t, operator, "news.>")
		resumed := of(timer.Resume, "paused")
		if resumed.Outcome != timer.Pending {
			t.Errorf("with the new secret alone, the paused series is resumed as %+v", resumed)
		}
		time.Sleep(time.Until(start.Add(100 * time.Hour)))
		synctest.Wait()
		if got := bodies(parked.all()) + " " + bodies(news.all()); got != "parked news" {
			t.Errorf("of the paused targets arrived %q", got)
		}
		const day = 24 * time.Hour
		in["daily"].rounds(t, series["daily"], start, times(day, day, 4)...)
		movedTo := moved.Due.Sub(start)
		in["moved"].rounds(t, series["moved"], start, append([]time.Duration{movedTo}, times(2*day, day, 3)...)...)
		in["paused"].rounds(t, series["paused"], start, times(2*day, day, 3)...)
		for name, after := range map[string]time.Duration{"once": 40 * time.Hour, "rare": 72 * time.Hour,
			"plain": 20 * time.Hour} {
			if all := in[name].all(); len(all) != 1 || all[0].Body != name || all[0].At.Sub(start).Round(time.Second) != after {
				t.Errorf("%s arrived as %+v, want once after %s", name, all, after)
			}
		}
		c.checkNoDead()
	})
}
