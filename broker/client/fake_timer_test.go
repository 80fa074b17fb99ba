package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/test/harness"
)

// timersOn returns the configuration of a broker with named timers.
func timersOn(t *testing.T) broker.Config {
	return broker.Config{Ladder: harness.Ladder(t, "1s 5s 10s 1m 10m 1h"), Timers: true}
}

// TestFakeTimersAreLikeTheBroker runs one scenario with named timers on a real broker and on the fake. All outcomes,
// states and arrivals are equal. Generations differ: the broker stores its own entries between the clients' entries.
func TestFakeTimersAreLikeTheBroker(t *testing.T) {
	t.Parallel()
	checkFake(t, timersOn(t), timerScenario, (*diary).recordFiring, 40, 6)
}

// TestFakeDebouncesLikeTheBroker: on a real broker and on the fake, calls with Debounce postpone a timer up to the
// maximum wait after the first call. A move ends the run (see Debounce).
func TestFakeDebouncesLikeTheBroker(t *testing.T) {
	t.Parallel()
	checkFake(t, timersOn(t), debounceScenario, (*diary).recordFiring, 0, 3)
}

func debounceScenario(t *testing.T, c *client.Client, _ *diary, pass func(time.Duration)) {
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
	call(7) // two runs: the timer fires 25 s after the first call, and 25 s after the fifth call
	pass(time.Minute)
	call(2)
	if moved, err := c.MovePending(t.Context(), "a", "shop.a", time.Hour); !moved || err != nil {
		t.Errorf("moved %t, %v, want true", moved, err)
	}
	pass(2 * time.Hour)
}

func (d *diary) recordFiring(m *nats.Msg) {
	a, _ := client.ParseArrival(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrivals = append(d.arrivals, d.line("%s %q due %s accepted %s %q", m.Subject, m.Data, a.Due, a.Accepted,
		m.Header["X-Mine"]))
}

func timerScenario(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	k := newTimerWriter(t, c, d, pass)
	k.publishSets()
	k.setLarge()
	pass(time.Second)
	if state, err := c.Timer(t.Context(), "i", "shop.i"); err != nil || state.State != client.StatePending {
		t.Errorf("the largest timer: got %s, %v, want pending", state.State, err)
	}
	if err := c.CancelAny(t.Context(), "i", "shop.i"); err != nil {
		t.Error(err)
	}
	pass(30 * time.Second)
	k.publishIn("h", 0)
	k.cancel("h", k.generation["h"])
	k.publishIn("h", time.Hour, client.IfAbsent())
	pass(2 * time.Minute) // longer than DELAY_TIMER_HISTORY, after which the broker removes ended timers
	for _, key := range []string{"a", "b", "c", "f", "g", "h"} {
		k.note("later", key, client.Receipt{}, nil)
	}
	k.publishIn("b", time.Minute, client.IfAbsent())
	k.move("g", k.generation["g"], 0)
	k.cancel("g", k.generation["g"])
	pass(time.Hour)
	for _, key := range []string{"a", "b", "e", "f", "g", "h"} {
		k.note("at last", key, client.Receipt{}, nil)
	}
}

// timerWriter changes timers. It records each answer, and the state of the timer after the answer.
type timerWriter struct {
	t          *testing.T
	c          *client.Client
	d          *diary
	pass       func(time.Duration)
	began      time.Time
	generation map[string]uint64 // of the last set, by key
}

func newTimerWriter(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) timerWriter {
	return timerWriter{t: t, c: c, d: d, pass: pass, began: d.now(), generation: make(map[string]uint64)}
}

func (k timerWriter) note(name, key string, r client.Receipt, err error) {
	state, readErr := k.c.Timer(context.Background(), key, "shop."+key)
	set := k.generation[key]
	k.d.receipts = append(k.d.receipts, k.d.line(
		"%s %s: %s due %s, %v; %s is the set %t, of its series %t, round %d, due %s, %q, %v",
		name, key, r.Stream, r.Due, kindsOf(err),
		state.State, state.Generation == set, state.Series == set, state.Round, state.Due, state.Body, readErr))
}

// settle waits for the delivery of a timer if its delay is zero.
func (k timerWriter) settle(delay time.Duration) {
	if delay == 0 {
		k.pass(10 * time.Second)
	}
}

// set remembers the generation that the receipt of a set contains.
func (k timerWriter) set(key string, r client.Receipt, err error) {
	if err == nil {
		k.generation[key] = r.Sequence
	}
}

func (k timerWriter) publishIn(key string, delay time.Duration, opts ...client.Option) {
	r, err := k.c.In(context.Background(), "shop."+key, delay, []byte(delay.String()), append(opts, client.Key(key))...)
	k.set(key, r, err)
	k.settle(delay)
	k.note("in "+delay.String(), key, r, err)
}

func (k timerWriter) publishAt(key string, when time.Time, opts ...client.Option) {
	r, err := k.c.At(context.Background(), "shop."+key, when, nil, append(opts, client.Key(key))...)
	k.set(key, r, err)
	k.note("at", key, r, err)
}

func (k timerWriter) move(key string, g uint64, delay time.Duration) {
	r, err := k.c.Move(context.Background(), key, "shop."+key, g, delay, []byte("moved"), client.Header("X-Mine", "1"))
	k.set(key, r, err)
	k.settle(delay)
	k.note("move "+delay.String(), key, r, err)
}

func (k timerWriter) cancel(key string, g uint64) {
	k.note("cancel", key, client.Receipt{}, k.c.Cancel(context.Background(), key, "shop."+key, g))
}

func (k timerWriter) cancelAny(key string) {
	k.note("cancel any", key, client.Receipt{}, k.c.CancelAny(context.Background(), key, "shop."+key))
}

func (k timerWriter) publishSets() {
	k.publishIn("a", time.Minute, client.IfAbsent())
	k.publishIn("a", time.Minute, client.IfAbsent())
	first := k.generation["a"]
	k.publishIn("a", 2*time.Minute)
	k.move("a", first, time.Hour)
	k.cancel("a", first)
	k.move("a", k.generation["a"], 3*time.Minute)
	k.publishIn("b", time.Minute, client.Expires(time.Minute), client.MaxAttempts(2), client.Deliver(client.ModeCore))
	k.cancel("b", k.generation["b"])
	k.cancel("b", k.generation["b"])
	k.publishIn("b", time.Minute, client.IfAbsent())
	k.publishIn("c", time.Hour)
	k.cancelAny("c")
	k.cancelAny("d")
	k.publishAt("e", k.began.Add(80*time.Second+1))
	k.publishAt("f", k.began.Add(time.Hour))
	k.publishAt("f", k.began.Add(4*time.Minute+1), client.IfGeneration(k.generation["f"]))
	k.publishIn("g", 20*time.Minute)
	for _, key := range []string{"", "_a", "a.b", "a b", "a*", ">", strings.Repeat("x", 129)} {
		k.publishIn(key, time.Hour)
		k.cancel(key, 1)
	}
}

// setLarge sets timers that are too large, and the largest valid timer.
func (k timerWriter) setLarge() {
	header := len("NATS/1.0\r\nDelay-For: 1h\r\n\r\n")
	for _, size := range []int{1 << 20, 1<<20 - 4<<10 - header, 1<<20 - 8<<10 - header + 1, 1<<20 - 8<<10 - header} {
		r, err := k.c.In(context.Background(), "shop.i", time.Hour, make([]byte, size), client.Key("i"))
		k.d.receipt(fmt.Sprint(size, " bytes"), client.Receipt{Stream: r.Stream}, err)
	}
}
