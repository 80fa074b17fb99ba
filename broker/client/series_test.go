package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/test/natstest"
)

// TestFakeSeriesAreLikeTheBroker runs one scenario with recurring timers on a real broker and on the fake. All
// outcomes, states and arrivals are equal, except the generations.
func TestFakeSeriesAreLikeTheBroker(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	checkFake(t, timersOn(t), seriesScenario, (*diary).recordRound, 20, 14)
}

// recordRound records the arrival of a round, with a precision of a second. Two late rounds are a tenth of a second
// apart, and a broker waits until the previous round is settled.
func (d *diary) recordRound(m *nats.Msg) {
	a, _ := client.ParseArrival(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrivals = append(d.arrivals, fmt.Sprintf("%s %s %q round %d of a series %t, due %s, %q",
		d.now().Sub(d.began).Truncate(time.Second), m.Subject, m.Data, a.Round, a.Series > 0, a.Due, m.Header["X-Mine"]))
}

func seriesScenario(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	k := seriesWriter{newTimerWriter(t, c, d, pass)}
	k.publishSets()
	k.sendRequests()
	k.missRounds()
	k.pass(time.Minute)
	for _, key := range []string{"a", "d", "f"} {
		k.note("after 20m", key, client.Receipt{}, nil)
	}
	k.cancel("d", k.generation["d"])
	k.cancelAny("d")
	k.pass(3*time.Hour + 30*time.Minute)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		k.note("at last", key, client.Receipt{}, nil)
	}
}

type seriesWriter struct{ timerWriter }

func (k seriesWriter) schedule(key string, opts ...client.Option) {
	r, err := k.c.Schedule(context.Background(), "shop."+key, []byte("body of "+key), append(opts, client.Key(key))...)
	k.set(key, r, err)
	k.note("schedule", key, r, err)
}

func (k seriesWriter) ask(name, key string, do func(context.Context, string, string) error) {
	k.note(name, key, client.Receipt{}, do(context.Background(), key, "shop."+key))
}

// publishSets sets timers with all kinds of options, valid and invalid.
func (k seriesWriter) publishSets() {
	ctx := context.Background()
	k.schedule("a", client.Every(10*time.Minute), client.Rounds(5), client.Expires(time.Minute),
		client.Header("X-Mine", "1"))
	k.schedule("a", client.Every(time.Minute), client.IfAbsent())
	k.schedule("b", client.Cron("30 2 * * *", "Europe/Berlin"))
	k.schedule("c", client.Every(time.Hour), client.LastRound(k.began.Add(3*time.Hour)),
		client.MissedRounds(client.MissedAll))
	k.schedule("d", client.Every(15*time.Minute), client.PauseAfter(3))
	for _, wrong := range [][]client.Option{
		nil, {client.Every(time.Millisecond)}, {client.Cron("0 0 30 2 *", "")}, {client.Cron("@daily", "Berlin")},
		{client.Every(time.Hour), client.Cron("@daily", "")}, {client.Rounds(2)},
		{client.Every(time.Hour), client.Rounds(0)}, {client.PauseAfter(3)}, {client.Every(time.Hour), client.PauseAfter(0)},
		{client.Every(time.Hour), client.Jitter(time.Hour)}, {client.Every(time.Hour), client.MissedRounds("")},
		{client.Every(time.Hour), client.LastRound(k.began)}, {client.Every(time.Hour), client.ID("x")},
	} {
		k.schedule("wrong", wrong...)
	}
	r, err := k.c.In(ctx, "shop.e", time.Minute, nil, client.Key("e"), client.Every(time.Hour),
		client.Rounds(2))
	k.set("e", r, err)
	k.note("in", "e", r, err)
	r, err = k.c.At(ctx, "shop.f", k.began.Add(-7*time.Minute), nil, client.Key("f"), client.Every(10*time.Minute),
		client.Rounds(2))
	k.set("f", r, err)
	k.note("at", "f", r, err)
	_, err = k.c.In(ctx, "shop.g", time.Minute, nil, client.Every(time.Hour))
	k.note("without a key", "g", client.Receipt{}, err)
	_, err = k.c.Schedule(ctx, "shop.g", nil, client.Every(time.Hour))
	k.note("without a key", "g", client.Receipt{}, err)
}

// sendRequests pauses, resumes and fires recurring timers, and a timer that fires once.
func (k seriesWriter) sendRequests() {
	for _, key := range []string{"a", "nobody", "a.b"} {
		k.ask("pause", key, k.c.Pause)
	}
	k.ask("pause again", "a", k.c.Pause)
	k.ask("resume", "a", k.c.Resume)
	resumed, _ := k.c.Timer(context.Background(), "a", "shop.a")
	k.ask("resume again", "a", k.c.Resume)
	repeated, err := k.c.Timer(context.Background(), "a", "shop.a")
	if err != nil || repeated.Generation != resumed.Generation {
		k.t.Errorf("a second resume: generation %d, %v, want %d", repeated.Generation, err, resumed.Generation)
	}
	if _, err := k.c.In(context.Background(), "shop.once", time.Hour, nil, client.Key("once")); err != nil {
		k.t.Error(err)
	}
	k.ask("pause", "once", k.c.Pause)
	fire := func(ctx context.Context, key, target string) error { return k.c.Fire(ctx, key, target, "operator-1") }
	k.ask("fire", "b", fire)
	k.pass(time.Second)
	k.ask("fire again", "b", fire) // a repeated request, which adds no second delivery
	k.pass(time.Second)
	err = k.c.Fire(context.Background(), "once", "shop.once", "")
	k.pass(time.Second)
	k.note("fire", "once", client.Receipt{}, err)
	k.note("invalid token", "b", client.Receipt{}, k.c.Fire(context.Background(), "b", "shop.b", "two words"))
}

// missRounds makes series miss rounds by a pause, with each policy for missed rounds.
func (k seriesWriter) missRounds() {
	ctx := context.Background()
	for _, missed := range []client.Missed{client.MissedSkip, client.MissedOne, client.MissedAll} {
		key := string(missed)
		if _, err := k.c.Schedule(ctx, "shop."+key, nil, client.Key(key), client.Every(4*time.Minute), client.Rounds(4),
			client.MissedRounds(missed)); err != nil {
			k.t.Error(err)
		}
		if err := k.c.Pause(ctx, key, "shop."+key); err != nil {
			k.t.Error(err)
		}
		k.pass(time.Second) // otherwise, rounds of several series would be due at the same time
	}
	k.pass(19 * time.Minute)
	for _, key := range []string{"skip", "one", "all"} {
		err := k.c.Resume(ctx, key, "shop."+key)
		k.pass(10 * time.Second)
		k.note("resumed", key, client.Receipt{}, err)
	}
}
