package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestLevelSavesTheIntake: In publishes a message to the level with its delay, if there is one, and otherwise to the
// intake. Each message takes one publish.
func TestLevelSavesTheIntake(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: levels.Default(), IntakeDurations: levels.PlainDurations()})
		c, nc := newClient(t, s, client.Config{})
		want := map[time.Duration]string{
			2500 * time.Second: "DELAY_INTAKE", 17 * time.Minute: "DELAY_INTAKE", 1234 * time.Millisecond: "DELAY_INTAKE",
			0: "DELAY_INTAKE", -time.Hour: "DELAY_INTAKE", time.Hour - 1: "DELAY_1h", time.Hour + 1: "DELAY_INTAKE",
		}
		for _, l := range levels.Default().Levels() {
			want[l.Delay] = "DELAY_" + l.Name
		}
		for delay, stream := range want {
			r, n := publishIn(t, c, nc, delay)
			if r.Stream != stream || n != 1 {
				t.Errorf("%s: got %s in %d publishes, want %s in one", delay, r.Stream, n, stream)
			}
		}
	})
}

// publishIn publishes a message, and returns the receipt and the number of publishes.
func publishIn(t *testing.T, c *client.Client, nc *nats.Conn, delay time.Duration) (client.Receipt, uint64) {
	t.Helper()
	sent := nc.Stats().OutMsgs
	r, err := c.In(t.Context(), "shop.x", delay, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, nc.Stats().OutMsgs - sent
}

// TestLevelThatIsGone: a level whose name is no plain duration saves a hop while it accepts messages. After the level
// is retired, messages go through the intake, and are due at the same time, exact to the nanosecond. During the next
// minute, the client does not use the level's subject.
func TestLevelThatIsGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const delay = 2500 * time.Second
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m 2500s"), IntakeDurations: levels.PlainDurations()}
		stop := harness.StartBroker(t, s, cfg).Stop
		c, nc := newClient(t, s, client.Config{Levels: "1s 5s 1m 2500s"})
		snapshot := recordArrivals(t, nc)
		if r, n := publishIn(t, c, nc, delay); r.Stream != "DELAY_2500s" || n != 1 {
			t.Errorf("got %s in %d publishes, want the level in one", r.Stream, n)
		}
		stop()
		cfg.Ladder = harness.Ladder(t, "1s 5s 1m")
		harness.StartBroker(t, s, cfg)
		for _, tt := range []struct {
			pass      time.Duration
			publishes uint64
		}{
			{0, 2},
			{0, 1}, // the client does not use the level's subject
			{time.Minute - 1, 1},
			{1, 2},
			{0, 1},
		} {
			time.Sleep(tt.pass)
			stored := time.Now()
			r, n := publishIn(t, c, nc, delay)
			if r.Stream != "DELAY_INTAKE" || n != tt.publishes || !r.Due.Equal(stored.Add(delay)) {
				t.Errorf("%+v in %d publishes, want the intake in %d", r, n, tt.publishes)
			}
		}
		p := c.Publisher(0)
		time.Sleep(time.Minute)
		pending, err := p.In(t.Context(), "shop.x", delay, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := pending.Wait(t.Context()); err != nil || r.Stream != "DELAY_INTAKE" {
			t.Errorf("asynchronously: got %+v, %v, want the intake", r, err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		time.Sleep(delay)
		synctest.Wait()
		messages := snapshot()
		for _, a := range messages {
			if !a.At.Equal(a.Due) || !a.Due.Equal(a.Accepted.Add(delay)) {
				t.Errorf("%s arrived at %s, want %s after %s", a.ID, a.At, delay, a.Accepted)
			}
		}
		if len(messages) != 7 {
			t.Errorf("%d messages arrived, want 7", len(messages))
		}
	})
}

// TestIDGoesToOneStream: a message with an id is published several times, and stored once. The subject depends neither
// on the client's known levels nor on earlier errors.
func TestIDGoesToOneStream(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 60s 2500s"), IntakeDurations: levels.PlainDurations()}
		harness.StartBroker(t, s, cfg)
		c, nc := newClient(t, s, client.Config{})
		withLevels, _ := newClient(t, s, client.Config{Levels: "1s 5s 60s 2500s"})
		for _, tt := range []struct {
			delay  time.Duration
			stream string
		}{{5 * time.Second, "DELAY_5s"}, {time.Minute, "DELAY_INTAKE"}, {2500 * time.Second, "DELAY_INTAKE"}} {
			for i, c := range []*client.Client{c, withLevels, c} {
				r, err := c.In(t.Context(), "shop.x", tt.delay, nil, client.ID(tt.delay.String()))
				if err != nil || r.Stream != tt.stream || r.Duplicate != (i > 0) {
					t.Errorf("%s: got %+v, %v, want the message once in %s", tt.delay, r, err, tt.stream)
				}
			}
		}
		if err := s.JetStream(nc).DeleteStream(t.Context(), "DELAY_5s"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := c.In(t.Context(), "shop.x", 5*time.Second, nil, client.ID("other"))
			wantError(t, err, client.ErrNoBroker)
		}
		p := c.Publisher(0)
		if _, err := p.In(t.Context(), "shop.x", 5*time.Second, nil, client.ID("other")); err != nil {
			t.Error(err)
		}
		wantError(t, p.Close(t.Context()), client.ErrNoBroker)
		if r, err := c.In(t.Context(), "shop.x", 5*time.Second, nil); err != nil || r.Stream != "DELAY_INTAKE" {
			t.Errorf("without an id: got %+v, %v, want the intake", r, err)
		}
		_, err := c.In(t.Context(), "shop.x", 5*time.Second, nil, client.ID("other"))
		wantError(t, err, client.ErrNoBroker)
	})
}

// TestReadLevels: ReadLevels reads the levels that accept new messages, and no retired levels.
func TestReadLevels(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{})
		wantError(t, c.ReadLevels(t.Context()), client.ErrNoBroker)
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 2500s 60s 3500s"), IntakeDurations: levels.PlainDurations()}
		stop := harness.StartBroker(t, s, cfg).Stop
		if r, _ := publishIn(t, c, nc, 3500*time.Second); r.Stream != "DELAY_INTAKE" {
			t.Errorf("got %s, want the intake", r.Stream)
		}
		stop()
		// 3500s is retired.
		cfg.Ladder = harness.Ladder(t, "1s 5s 2500s 60s")
		harness.StartBroker(t, s, cfg)
		if err := c.ReadLevels(t.Context()); err != nil {
			t.Fatal(err)
		}
		for delay, stream := range map[time.Duration]string{
			2500 * time.Second: "DELAY_2500s", time.Minute: "DELAY_60s", 5 * time.Second: "DELAY_5s",
			3500 * time.Second: "DELAY_INTAKE", time.Hour: "DELAY_INTAKE",
		} {
			if r, n := publishIn(t, c, nc, delay); r.Stream != stream || n != 1 {
				t.Errorf("%s: got %s in %d publishes, want %s in one", delay, r.Stream, n, stream)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, c.ReadLevels(ctx), context.Canceled)
	})
}

// TestLevelsByName: Level accepts the names of levels and all plain durations.
func TestLevelsByName(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	for name, stream := range map[string]string{
		"90m": "DELAY_90m", "14d": "DELAY_14d", "60s": "DELAY_INTAKE", "7777s": "DELAY_INTAKE", "1h30m": "DELAY_INTAKE",
	} {
		d, err := levels.ParseDuration(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Level(t.Context(), "shop.x", name, nil)
		if err != nil || r.Stream != stream || !r.Due.Equal(fake.Now().Add(d)) {
			t.Errorf("%s: got %+v, %v, want it in %s", name, r, err, stream)
		}
	}
	for _, name := range []string{"", "5", "5 s", "1.5s", "5s.shop", "*", ">", "in", "-5s", "5S"} {
		_, err := c.Level(t.Context(), "shop.x", name, nil)
		wantError(t, err, client.ErrBadTime)
	}
	if n := len(fake.Requests()); n != 5 {
		t.Errorf("%d requests were published, want 5", n)
	}
}

// TestTargetThatLooksLikeATime: a target such as 5s.shop is allowed only on a level's subject. So the client does not
// publish a message to this target through the intake.
func TestTargetThatLooksLikeATime(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	if r, err := c.In(t.Context(), "5s.shop", time.Minute, nil); err != nil || r.Stream != "DELAY_1m" {
		t.Errorf("a level: got %+v, %v, want the message in DELAY_1m", r, err)
	}
	_, err := c.In(t.Context(), "5s.shop", 1234*time.Millisecond, nil)
	wantError(t, err, client.ErrBadTime)
	_, err = c.Level(t.Context(), "5s.shop", "7777s", nil)
	wantError(t, err, client.ErrNoBroker)
	if got := fake.Advance(time.Hour); len(got) != 1 || got[0].Subject != "5s.shop" {
		t.Errorf("got %d arrivals, want one at 5s.shop", len(got))
	}
	if got := fake.Letters(); len(got) > 0 {
		t.Errorf("got the dead letters %v, want none", got)
	}
}
