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

// TestFakeSeriesAreLikeTheBroker runs one scenario with timers that recur on a real broker and on the fake. All
// outcomes, states and arrivals are the same, but for the generations.
func TestFakeSeriesAreLikeTheBroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		got, want := onBoth(t, s, series, (*diary).round)
		checkSame(t, got.receipts, want.receipts, 20)
		checkSame(t, got.arrivals, want.arrivals, 14)
	})
}

// round notes an arrival, to the second: rounds that are caught up come a tenth of one apart, and a broker has to look
// whether the one before is settled.
func (d *diary) round(m *nats.Msg) {
	a, _ := client.Of(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrivals = append(d.arrivals, fmt.Sprintf("%s %s %q round %d of a series %t, due %s, %q",
		d.now().Sub(d.began).Truncate(time.Second), m.Subject, m.Data, a.Round, a.Series > 0, a.Due, m.Header["X-Mine"]))
}

// series sets timers that recur, replaces, cancels and looks at them.
func series(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	ctx, now := t.Context(), d.now()
	first := make(map[string]uint64)
	note := func(what, key string, r client.Receipt, err error) {
		state, looking := c.Timer(ctx, key, "shop."+key)
		d.receipts = append(d.receipts, d.line("%s %s: %s due %s, %v; %s round %d of ours %t, due %s, %q, %v", what, key,
			r.Stream, r.Due, kindsOf(err), state.State, state.Round, state.Series == first[key], state.Due, state.Body, looking))
	}
	schedule := func(key string, opts ...client.Option) {
		r, err := c.Schedule(ctx, "shop."+key, []byte("body of "+key), append(opts, client.Key(key))...)
		if err == nil {
			first[key] = r.Sequence
		}
		note("schedule", key, r, err)
	}
	schedule("a", client.Every(10*time.Minute), client.Rounds(5), client.Expires(time.Minute),
		client.Header("X-Mine", "1"))
	schedule("a", client.Every(time.Minute), client.IfAbsent())
	schedule("b", client.Cron("30 2 * * *", "Europe/Berlin"))
	schedule("c", client.Every(time.Hour), client.LastRound(now.Add(3*time.Hour)), client.MissedRounds(client.MissedAll))
	schedule("d", client.Every(15*time.Minute))
	for _, wrong := range [][]client.Option{
		nil, {client.Every(time.Millisecond)}, {client.Cron("0 0 30 2 *", "")}, {client.Cron("@daily", "Berlin")},
		{client.Every(time.Hour), client.Cron("@daily", "")}, {client.Rounds(2)}, {client.Every(time.Hour), client.Rounds(0)},
		{client.Every(time.Hour), client.Jitter(time.Hour)}, {client.Every(time.Hour), client.MissedRounds("")},
		{client.Every(time.Hour), client.LastRound(now)}, {client.Every(time.Hour), client.ID("x")},
	} {
		schedule("wrong", wrong...)
	}
	r, err := c.In(ctx, "shop.e", time.Minute, nil, client.Key("e"), client.Every(time.Hour), client.Rounds(2))
	first["e"] = r.Sequence
	note("in", "e", r, err)
	r, err = c.At(ctx, "shop.f", now.Add(-7*time.Minute), nil, client.Key("f"), client.Every(10*time.Minute),
		client.Rounds(2))
	first["f"] = r.Sequence
	note("at", "f", r, err)
	_, err = c.In(ctx, "shop.g", time.Minute, nil, client.Every(time.Hour))
	note("without a key", "g", client.Receipt{}, err)
	_, err = c.Schedule(ctx, "shop.g", nil, client.Every(time.Hour))
	note("without a key", "g", client.Receipt{}, err)

	ask := func(what, key string, do func(context.Context, string, string) error) {
		note(what, key, client.Receipt{}, do(ctx, key, "shop."+key))
	}
	for _, key := range []string{"a", "nobody", "a.b"} {
		ask("pause", key, c.Pause)
	}
	ask("pause again", "a", c.Pause)
	ask("resume", "a", c.Resume)
	if _, err := c.In(ctx, "shop.once", time.Hour, nil, client.Key("once")); err != nil {
		t.Error(err)
	}
	ask("pause", "once", c.Pause)
	ask("fire", "b", c.Fire)
	pass(time.Second)
	err = c.Fire(ctx, "once", "shop.once")
	pass(time.Second)
	note("fire", "once", client.Receipt{}, err)
	for _, missed := range []client.Missed{client.MissedSkip, client.MissedOne, client.MissedAll} {
		key := string(missed)
		if _, err := c.Schedule(ctx, "shop."+key, nil, client.Key(key), client.Every(4*time.Minute), client.Rounds(4),
			client.MissedRounds(missed)); err != nil {
			t.Error(err)
		}
		if err := c.Pause(ctx, key, "shop."+key); err != nil {
			t.Error(err)
		}
		pass(time.Second) // or several would be due at one moment
	}
	pass(19 * time.Minute)
	for _, key := range []string{"skip", "one", "all"} {
		err := c.Resume(ctx, key, "shop."+key)
		pass(10 * time.Second)
		note("resumed", key, client.Receipt{}, err)
	}
	pass(time.Minute)
	for _, key := range []string{"a", "d", "f"} {
		note("after 20m", key, client.Receipt{}, nil)
	}
	note("cancel round 1 of", "d", client.Receipt{}, c.Cancel(ctx, "d", "shop.d", first["d"]))
	note("cancel any", "d", client.Receipt{}, c.CancelAny(ctx, "d", "shop.d"))
	pass(3*time.Hour + 30*time.Minute)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		note("at last", key, client.Receipt{}, nil)
	}
}
