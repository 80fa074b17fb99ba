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

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// timersOn is the configuration of a broker with named timers.
func timersOn(t *testing.T) broker.Config {
	return broker.Config{Ladder: harness.Ladder(t, "1s 5s 10s 1m 10m 1h"), Timers: true}
}

// TestFakeTimersAreLikeTheBroker runs one scenario on a real broker and on the fake. All outcomes, states and arrivals
// are the same, but for the generations: the broker stores entries of its own between those of clients.
func TestFakeTimersAreLikeTheBroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		got, want := onBoth(t, s, timers, (*diary).rang)
		checkSame(t, got.receipts, want.receipts, 40)
		checkSame(t, got.arrivals, want.arrivals, 6)
	})
}

// TestFakeDebouncesLikeTheBroker: calls postpone a timer, until the longest wait after the first one, and until another
// call moves it.
func TestFakeDebouncesLikeTheBroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		got, want := onBoth(t, s, debounces, (*diary).rang)
		checkSame(t, got.arrivals, want.arrivals, 3)
	})
}

func debounces(t *testing.T, c *client.Client, _ *diary, pass func(time.Duration)) {
	t.Helper()
	call := func(times int) {
		for i := range times {
			if _, err := c.In(t.Context(), "shop.a", 10*time.Second, []byte{byte('0' + i)}, client.Key("a"),
				client.Debounce(25*time.Second)); err != nil {
				t.Error(err)
			}
			pass(8 * time.Second)
		}
	}
	call(7) // delivered after 25 s, and 25 s after the fifth
	pass(time.Minute)
	call(2)
	if moved, err := c.MovePending(t.Context(), "a", "shop.a", time.Hour); !moved || err != nil {
		t.Errorf("moved %t, %v", moved, err)
	}
	pass(2 * time.Hour)
}

func (d *diary) rang(m *nats.Msg) {
	a, _ := client.Of(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrivals = append(d.arrivals, d.line("%s %q due %s accepted %s %q", m.Subject, m.Data, a.Due, a.Accepted,
		m.Header["X-Mine"]))
}

// timers sets, moves, cancels and looks at timers.
func timers(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	k := keeper{c: c, d: d, pass: pass, began: d.now(), generation: make(map[string]uint64)}
	k.sets()
	k.sizes()
	pass(time.Second)
	if state, err := c.Timer(t.Context(), "i", "shop.i"); err != nil || state.State != client.StatePending {
		t.Errorf("the largest timer: got %s, %v, want it pending", state.State, err)
	}
	if err := c.CancelAny(t.Context(), "i", "shop.i"); err != nil {
		t.Error(err)
	}
	pass(30 * time.Second)
	k.in("h", 0)
	k.cancel("h", k.generation["h"])
	k.in("h", time.Hour, client.IfAbsent())
	pass(2 * time.Minute) // what is over is forgotten, some time after its history has passed
	for _, key := range []string{"a", "b", "c", "f", "g", "h"} {
		k.note("later", key, client.Receipt{}, nil)
	}
	k.in("b", time.Minute, client.IfAbsent())
	k.move("g", k.generation["g"], 0)
	k.cancel("g", k.generation["g"])
	pass(time.Hour)
	for _, key := range []string{"a", "b", "e", "f", "g", "h"} {
		k.note("at last", key, client.Receipt{}, nil)
	}
}

// keeper keeps timers, and a diary of the answers and of what is known of each afterwards.
type keeper struct {
	c          *client.Client
	d          *diary
	pass       func(time.Duration)
	began      time.Time
	generation map[string]uint64 // by key
}

func (k keeper) note(what, key string, r client.Receipt, err error) {
	state, looking := k.c.Timer(context.Background(), key, "shop."+key)
	k.d.receipts = append(k.d.receipts, k.d.line("%s %s: %s due %s, %v; %s is generation %t, due %s, %q, %v",
		what, key, r.Stream, r.Due, kindsOf(err),
		state.State, state.Generation == k.generation[key], state.Due, state.Body, looking))
}

// settle waits for what is due at once: it is fired, and a moment later delivered.
func (k keeper) settle(delay time.Duration) {
	if delay == 0 {
		k.pass(10 * time.Second)
	}
}

// set takes in the answer to a set.
func (k keeper) set(key string, r client.Receipt, err error) {
	if err == nil {
		k.generation[key] = r.Sequence
	}
}

func (k keeper) in(key string, delay time.Duration, opts ...client.Option) {
	r, err := k.c.In(context.Background(), "shop."+key, delay, []byte(delay.String()), append(opts, client.Key(key))...)
	k.set(key, r, err)
	k.settle(delay)
	k.note("in "+delay.String(), key, r, err)
}

func (k keeper) at(key string, when time.Time, opts ...client.Option) {
	r, err := k.c.At(context.Background(), "shop."+key, when, nil, append(opts, client.Key(key))...)
	k.set(key, r, err)
	k.note("at", key, r, err)
}

func (k keeper) move(key string, g uint64, delay time.Duration) {
	r, err := k.c.Move(context.Background(), key, "shop."+key, g, delay, []byte("moved"), client.Header("X-Mine", "1"))
	k.set(key, r, err)
	k.settle(delay)
	k.note("move "+delay.String(), key, r, err)
}

func (k keeper) cancel(key string, g uint64) {
	k.note("cancel", key, client.Receipt{}, k.c.Cancel(context.Background(), key, "shop."+key, g))
}

// cancelAny cancels whatever generation there is.
func (k keeper) cancelAny(key string) {
	k.note("cancel any", key, client.Receipt{}, k.c.CancelAny(context.Background(), key, "shop."+key))
}

// sets sets timers, moves and cancels them.
func (k keeper) sets() {
	k.in("a", time.Minute, client.IfAbsent())
	k.in("a", time.Minute, client.IfAbsent())
	first := k.generation["a"]
	k.in("a", 2*time.Minute)
	k.move("a", first, time.Hour)
	k.cancel("a", first)
	k.move("a", k.generation["a"], 3*time.Minute)
	k.in("b", time.Minute, client.Expires(time.Minute), client.MaxAttempts(2), client.Deliver(client.ModeCore))
	k.cancel("b", k.generation["b"])
	k.cancel("b", k.generation["b"])
	k.in("b", time.Minute, client.IfAbsent())
	k.in("c", time.Hour)
	k.cancelAny("c")
	k.cancelAny("d")
	k.at("e", k.began.Add(80*time.Second+1))
	k.at("f", k.began.Add(time.Hour))
	k.at("f", k.began.Add(4*time.Minute+1), client.IfGeneration(k.generation["f"]))
	k.in("g", 20*time.Minute)
	for _, key := range []string{"", "_a", "a.b", "a b", "a*", ">", strings.Repeat("x", 129)} {
		k.in(key, time.Hour)
		k.cancel(key, 1)
	}
}

// sizes sets timers that are too large, and the largest.
func (k keeper) sizes() {
	header := len("NATS/1.0\r\nDelay-For: 1h\r\n\r\n")
	for _, size := range []int{1 << 20, 1<<20 - 4<<10 - header, 1<<20 - 8<<10 - header + 1, 1<<20 - 8<<10 - header} {
		r, err := k.c.In(context.Background(), "shop.i", time.Hour, make([]byte, size), client.Key("i"))
		k.d.receipt(fmt.Sprint(size, " bytes"), client.Receipt{Stream: r.Stream}, err)
	}
}

// TestTimerIsCancelledOrFires: of a cancel and a firing at the same moment exactly one wins, and the cancel knows
// which: what it has cancelled never arrives, and what it has not arrives once.
func TestTimerIsCancelledOrFires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		c, nc := newClient(t, s, client.Config{})
		arrived := arrivals(t, nc)
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
				time.Sleep(time.Until(r.Due) + time.Duration(i%3-1)) // at the moment, or a nanosecond beside it
				err := c.Cancel(t.Context(), key, "shop.x", r.Sequence)
				mu.Lock()
				defer mu.Unlock()
				cancelled[fmt.Sprintf("DELAY_TIMERS-%d-", r.Sequence)] = err
			})
		}
		cancelling.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		came := make(map[string]int)
		for _, a := range arrived() {
			came[a.ID[:strings.LastIndexByte(a.ID, '-')+1]]++
		}
		won := 0
		for id, err := range cancelled {
			switch {
			case err == nil:
				won++
				if came[id] != 0 {
					t.Errorf("%s was cancelled and has arrived", id)
				}
			case !errors.Is(err, client.ErrConflict) || came[id] != 1:
				t.Errorf("%s: got %v, and it has arrived %d times", id, err, came[id])
			}
		}
		if len(cancelled) != count {
			t.Errorf("%d are known, want all", len(cancelled))
		}
		t.Logf("%d of %d were cancelled", won, count)
	})
}

// TestTimerTellsWhatWasCancelled: the generation of a timer that is cancelled is the one that the server has compared,
// whoever cancelled it, and in whatever words. A cancel that expected nothing has cancelled none for certain.
func TestTimerTellsWhatWasCancelled(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, timersOn(t))
		c, nc := newClient(t, s, client.Config{})
		for word, expects := range map[string]bool{
			"paid": true, "paid twice": false, "1": false, "99999999999999999999": true, "any": true,
		} {
			r, err := c.In(t.Context(), "shop.a", time.Hour, nil, client.Key("k"))
			if err != nil {
				t.Fatal(err)
			}
			m := &nats.Msg{Subject: "delaytimer.k.shop.a", Header: nats.Header{"Delay-Cancel": {word}}}
			want := uint64(0)
			if expects {
				want = r.Sequence
				m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(want, 10))
			}
			if _, err := nc.RequestMsgWithContext(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			got, err := c.Timer(t.Context(), "k", "shop.a")
			if err != nil || got.State != client.StateCancelled || got.Generation != want {
				t.Errorf("in the words %q it is %s, generation %d, %v; want %d", word, got.State, got.Generation, err, want)
			}
		}
	})
}

// TestTimersWithoutABroker: setting, moving and cancelling are exact while no broker runs, and what is due then fires
// when one does.
func TestTimersWithoutABroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{})
		_, err := c.In(t.Context(), "shop.a", time.Minute, nil, client.Key("a"))
		wantError(t, err, client.ErrNoBroker)
		wantError(t, c.Cancel(t.Context(), "a", "shop.a", 7), client.ErrNoBroker)
		harness.StartBroker(t, s, timersOn(t)).Stop()
		arrived := arrivals(t, nc)
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
			t.Fatalf("got %+v, %v, want it pending", b, err)
		}
		if err := c.Cancel(t.Context(), "k", "shop.b", b.Generation); err != nil {
			t.Errorf("cancel: %v", err)
		}
		// The same call again, because the answer was lost: the state names the generation that was cancelled.
		wantError(t, c.Cancel(t.Context(), "k", "shop.b", b.Generation), client.ErrConflict)
		if now, err := c.Timer(t.Context(), "k", "shop.b"); err != nil || now.State != client.StateCancelled ||
			now.Generation != b.Generation {
			t.Errorf("got %+v, %v, want generation %d cancelled", now, err, b.Generation)
		}
		time.Sleep(time.Hour)
		harness.StartBroker(t, s, timersOn(t))
		time.Sleep(time.Second)
		if got := arrived(); len(got) != 1 || got[0].Late() < 59*time.Minute {
			t.Errorf("got %v, want the one that was not cancelled", got)
		}
	})
}

// TestForgedVerdict: an acknowledgement that cannot be the one of an expecting publish is not believed.
func TestForgedVerdict(t *testing.T) {
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

// TestTimerIsDueExactly: a header has room for a fraction, so a timer's time is not rounded, and its delay to a
// millisecond, upwards.
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
			t.Errorf("got %+v, %v, pending %+v, want it due %s", r, err, fake.Pending(), tt.due)
		}
	}
	if n := len(fake.Pending()); n != 1 {
		t.Errorf("%d are pending, want the last", n)
	}
}

// TestTimerMistakesFailAtTheCall: options that mean nothing together are not published.
func TestTimerMistakesFailAtTheCall(t *testing.T) {
	t.Parallel()
	c, fake := onFake(t)
	for name, opts := range map[string][]client.Option{
		"absent without a key":     {client.IfAbsent()},
		"generation without a key": {client.IfGeneration(1)},
		"generation 0":             {client.Key("k"), client.IfGeneration(0)},
		"debounce without a key":   {client.Debounce(2 * time.Hour)},
		"debounce for too short":   {client.Key("k"), client.Debounce(time.Minute)},
		"debounce what recurs":     {client.Key("k"), client.Debounce(2 * time.Hour), client.Every(time.Hour)},
		"an id":                    {client.Key("k"), client.ID("k")},
		"an expectation by hand":   {client.Header("Nats-Expected-Last-Subject-Sequence", "1")},
		"a cancel by hand":         {client.Key("k"), client.Header("Delay-Cancel", "1")},
	} {
		if _, err := c.In(t.Context(), "shop.x", time.Hour, nil, opts...); err == nil {
			t.Errorf("%s: published", name)
		}
	}
	_, err := c.In(t.Context(), "x", time.Hour, nil, client.Key("k.shop"))
	wantError(t, err, client.ErrBadKey)
	_, err = c.In(t.Context(), "shop.x", time.Hour, make([]byte, 1<<20-8<<10), client.Key("k")) // it could not fire
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
		t.Errorf("%d were published, want none", n)
	}
}
