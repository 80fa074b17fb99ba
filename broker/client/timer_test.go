package client_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimerIsCancelledOrFires: of a cancel and a firing at the same moment, exactly one succeeds. If the cancel
// succeeds, the timer never arrives. Otherwise the timer arrives once.
func TestTimerIsCancelledOrFires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		c, nc := newClient(t, s, client.Config{})
		snapshot := recordArrivals(t, nc)
		const count = 200
		var mu sync.Mutex
		cancelled := make(map[string]error)
		var cancelling sync.WaitGroup
		for i := range count {
			key := fmt.Sprint("order-", i)
			r, err := c.In(t.Context(), "shop.x", 2*time.Second, nil, client.Key(key), client.Header("X-Key", key))
			if err != nil {
				t.Fatal(err)
			}
			cancelling.Go(func() {
				time.Sleep(time.Until(r.Due) + time.Duration(i%3-1)) // to the due time, or a nanosecond before or after it
				err := c.Cancel(t.Context(), key, "shop.x", r.Sequence)
				mu.Lock()
				defer mu.Unlock()
				cancelled[fmt.Sprintf("DELAY_TIMERS-%d-", r.Sequence)] = err
			})
		}
		cancelling.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		arrivals := make(map[string]int)
		for _, a := range snapshot() {
			arrivals[a.ID[:strings.LastIndexByte(a.ID, '-')+1]]++
		}
		successes := 0
		for id, err := range cancelled {
			switch {
			case err == nil:
				successes++
				if arrivals[id] != 0 {
					t.Errorf("%s was cancelled and has arrived", id)
				}
			case !errors.Is(err, client.ErrConflict) || arrivals[id] != 1:
				t.Errorf("%s: got %v and %d arrivals, want ErrConflict and one arrival", id, err, arrivals[id])
			}
		}
		if len(cancelled) != count {
			t.Errorf("%d cancels have a result, want %d", len(cancelled), count)
		}
		t.Logf("%d of %d timers were cancelled", successes, count)
	})
}

// TestCancelledGeneration: after a cancel, Timer returns the generation that the cancel expected, and not a number in
// Delay-Cancel. After a cancel without an expectation, the generation is zero.
func TestCancelledGeneration(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		c, nc := newClient(t, s, client.Config{})
		for word, conditional := range map[string]bool{
			"paid": true, "paid twice": false, "1": false, "99999999999999999999": true, "any": true,
		} {
			r, err := c.In(t.Context(), "shop.a", time.Hour, nil, client.Key("k"))
			if err != nil {
				t.Fatal(err)
			}
			m := &nats.Msg{Subject: "delaytimer.k.shop.a", Header: nats.Header{"Delay-Cancel": {word}}}
			want := uint64(0)
			if conditional {
				want = r.Sequence
				m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(want, 10))
			}
			if _, err := nc.RequestMsgWithContext(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			got, err := c.Timer(t.Context(), "k", "shop.a")
			if err != nil || got.State != client.StateCancelled || got.Generation != want {
				t.Errorf("Delay-Cancel %q: got %s, generation %d, %v; want cancelled, %d", word, got.State, got.Generation, err,
					want)
			}
		}
	})
}

// TestTimersWithoutABroker: the results of set and cancel are exact while no broker runs. Overdue timers fire when a
// broker starts.
func TestTimersWithoutABroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{})
		_, err := c.In(t.Context(), "shop.a", time.Minute, nil, client.Key("a"))
		wantError(t, err, client.ErrNoBroker)
		wantError(t, c.Cancel(t.Context(), "a", "shop.a", 7), client.ErrNoBroker)
		harness.StartBroker(t, s, timersOn(t)).Stop()
		snapshot := recordArrivals(t, nc)
		p := c.Publisher(0)
		for _, target := range []string{"shop.a", "shop.b"} {
			if _, err := p.In(t.Context(), target, time.Minute, nil, client.Key("k"), client.IfAbsent()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.In(t.Context(), "shop.b", time.Minute, nil, client.Key("k"), client.IfAbsent()); err != nil {
			t.Fatal(err)
		}
		wantError(t, p.Close(t.Context()), client.ErrConflict)
		b, err := c.Timer(t.Context(), "k", "shop.b")
		if err != nil || b.State != client.StatePending {
			t.Fatalf("got %+v, %v, want a pending timer", b, err)
		}
		if err := c.Cancel(t.Context(), "k", "shop.b", b.Generation); err != nil {
			t.Errorf("cancel: %v", err)
		}
		// A program repeats the cancel, as if the answer was lost. The state has the generation that was cancelled.
		wantError(t, c.Cancel(t.Context(), "k", "shop.b", b.Generation), client.ErrConflict)
		if state, err := c.Timer(t.Context(), "k", "shop.b"); err != nil || state.State != client.StateCancelled ||
			state.Generation != b.Generation {
			t.Errorf("got %+v, %v, want generation %d cancelled", state, err, b.Generation)
		}
		time.Sleep(time.Hour)
		harness.StartBroker(t, s, timersOn(t))
		time.Sleep(time.Second)
		if got := snapshot(); len(got) != 1 || got[0].Lateness() < 59*time.Minute {
			t.Errorf("got %v, want only the timer that was not cancelled", got)
		}
	})
}

// TestForgedAnswer: a subscriber answers the publishes of Cancel and Move. An answer that the stream of timers cannot
// give is ErrForeign.
func TestForgedAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{Timeout: time.Second})
		for answer, want := range map[string]error{
			`{"stream":"DELAY_TIMERS","seq":8}`:                        nil,
			`{"stream":"DELAY_TIMERS","seq":7}`:                        client.ErrForeign,
			`{"stream":"DELAY_TIMERS","seq":9,"duplicate":true}`:       client.ErrForeign,
			`{"stream":"ORDERS","seq":9}`:                              client.ErrForeign,
			`{"error":{"code":400,"err_code":10071},"stream":"X"}`:     client.ErrConflict,
			`{"error":{"code":400,"err_code":10164},"stream":"X"}`:     client.ErrUnanswered,
			`{"error":{"code":503,"err_code":10077},"stream":"X"}`:     client.ErrFull,
			`{"error":{"code":400,"err_code":10158},"stream":"X"}`:     client.ErrUnanswered,
			`{"error":{"code":400,"err_code":10054},"stream":"X"}`:     client.ErrTooLarge,
			`{"stream":"DELAY_TIMERS","domain":"hub","seq":10}`:        nil,
			`{"type":"io.nats.jetstream.api.v1.stream_info_response"}`: client.ErrForeign,
		} {
			sub, err := nc.Subscribe("delaytimer.>", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Cancel(t.Context(), "k", "shop.x", 7); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("cancel, answered %s: got %v, want %v", answer, err, want)
			}
			if _, err := c.Move(t.Context(), "k", "shop.x", 7, 0, nil); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("move, answered %s: got %v, want %v", answer, err, want)
			}
			if err := sub.Unsubscribe(); err != nil {
				t.Fatal(err)
			}
		}
		swallow(t, nc, "delaytimer.>")
		wantError(t, c.Cancel(t.Context(), "k", "shop.x", 7), client.ErrUnanswered)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, c.Cancel(ctx, "k", "shop.x", 7), context.Canceled)
	})
}

// TestTimerIsDueExactly: the client does not round the time of a timer. It rounds a delay up to a millisecond.
func TestTimerIsDueExactly(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	at := fake.Now().Add(time.Hour + 999_999_999)
	for _, tt := range []struct {
		set func(opt client.Option) (client.Receipt, error)
		due time.Time
	}{
		{func(k client.Option) (client.Receipt, error) { return c.At(t.Context(), "shop.x", at, nil, k) }, at},
		{func(k client.Option) (client.Receipt, error) {
			return c.In(t.Context(), "shop.x", time.Minute+1, nil, k)
		}, fake.Now().Add(time.Minute + time.Millisecond)},
	} {
		r, err := tt.set(client.Key("k"))
		if err != nil || !r.Due.Equal(tt.due) || !fake.Pending()[0].Due.Equal(tt.due) {
			t.Errorf("got %+v, %v, pending %+v, want the due time %s", r, err, fake.Pending(), tt.due)
		}
	}
	if n := len(fake.Pending()); n != 1 {
		t.Errorf("%d timers are pending, want the last one", n)
	}
}

// TestTimerMistakesFailAtTheCall: contradictory options are an error, and nothing is published.
func TestTimerMistakesFailAtTheCall(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	for name, opts := range map[string][]client.Option{
		"absent without a key":     {client.IfAbsent()},
		"generation without a key": {client.IfGeneration(1)},
		"generation 0":             {client.Key("k"), client.IfGeneration(0)},
		"debounce without a key":   {client.Debounce(2 * time.Hour)},
		"debounce, too short":      {client.Key("k"), client.Debounce(time.Minute)},
		"debounce of a series":     {client.Key("k"), client.Debounce(2 * time.Hour), client.Every(time.Hour)},
		"an id":                    {client.Key("k"), client.ID("k")},
		"an expectation by hand":   {client.Header("Nats-Expected-Last-Subject-Sequence", "1")},
		"a cancel by hand":         {client.Key("k"), client.Header("Delay-Cancel", "1")},
	} {
		if _, err := c.In(t.Context(), "shop.x", time.Hour, nil, opts...); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
	_, err := c.In(t.Context(), "x", time.Hour, nil, client.Key("k.shop"))
	wantError(t, err, client.ErrBadKey)
	_, err = c.In(t.Context(), "shop.x", time.Hour, make([]byte, 1<<20-8<<10), client.Key("k")) // too large to fire
	wantError(t, err, client.ErrTooLarge)
	_, err = c.In(t.Context(), "shop.x", time.Hour, nil, client.Key("k"), client.Debounce(time.Minute))
	wantError(t, err, client.ErrBadOption)
	_, err = c.At(t.Context(), "shop.x", fake.Now().Add(time.Hour), nil, client.Key("k"), client.Debounce(2*time.Hour))
	wantError(t, err, client.ErrBadOption)
	_, err = c.Level(t.Context(), "shop.x", "1h", nil, client.Key("k"))
	wantError(t, err, client.ErrBadOption)
	wantError(t, c.Cancel(t.Context(), "k", "shop.x", 0), client.ErrBadOption)
	wantError(t, c.Cancel(t.Context(), "k.shop", "x", 1), client.ErrBadKey)
	wantError(t, c.CancelAny(t.Context(), "k", "shop.*"), client.ErrBadTarget)
	if n := len(fake.Requests()) + len(fake.Letters()); n > 0 {
		t.Errorf("%d requests were published, want none", n)
	}
}
