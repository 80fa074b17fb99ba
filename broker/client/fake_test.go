package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFakeIsLikeTheBroker runs one scenario on a real broker and on the fake. All receipts, errors and arrivals are
// equal: their streams, sequences, ids, due times, headers and order.
func TestFakeIsLikeTheBroker(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: levels.Default(), IntakeDurations: levels.PlainDurations()}
	checkFake(t, cfg, scenario, (*diary).arrived, 33, 18)
}

// checkFake runs a scenario on a real broker and then on the fake, and compares their diaries. It fails if a diary has
// fewer receipts or arrivals than the minimum.
func checkFake(
	t *testing.T, cfg broker.Config,
	scenario func(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)),
	arrived func(*diary, *nats.Msg), minReceipts, minArrivals int,
) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, cfg)
		c, nc := newClient(t, s, client.Config{})
		began := time.Now()
		got := &diary{began: began, now: time.Now}
		if _, err := nc.Subscribe("shop.>", func(m *nats.Msg) { arrived(got, m) }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		scenario(t, c, got, func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		})
		fake := clienttest.NewAt(t, client.Config{}, began)
		want := &diary{began: began, now: fake.Now}
		fake.Handle("shop.>", func(m *nats.Msg) { arrived(want, m) })
		scenario(t, fake.Client(), want, func(d time.Duration) { fake.Advance(d) })
		checkSame(t, got.receipts, want.receipts, minReceipts)
		checkSame(t, got.arrivals, want.arrivals, minArrivals)
	})
}

// checkSame fails unless the broker and the fake have the same lines, at least minLines.
func checkSame(t *testing.T, got, want []string, minLines int) {
	t.Helper()
	if len(got) < minLines || len(got) != len(want) {
		t.Errorf("%d lines of the broker and %d of the fake, want equal numbers of at least %d", len(got), len(want),
			minLines)
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("line %d\nthe broker: %s\nthe fake:   %s", i, got[i], want[i])
		}
	}
}

// A diary records the answers to a program and its messages.
type diary struct {
	began time.Time
	now   func() time.Time

	receipts []string

	mu       sync.Mutex // guards arrivals
	arrivals []string
}

func (d *diary) line(format string, args ...any) string {
	return fmt.Sprintf("%s ", d.now().Sub(d.began)) + fmt.Sprintf(format, args...)
}

func (d *diary) arrived(m *nats.Msg) {
	a, ok := client.ParseArrival(m)
	var header []string
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		header = append(header, fmt.Sprintf("%s=%q", name, m.Header[name]))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrivals = append(d.arrivals,
		d.line("%s %q, %s %t, %s", m.Subject, m.Data, a.Arrival.ID, ok, strings.Join(header, " ")))
}

func (d *diary) receipt(name string, r client.Receipt, err error) {
	d.receipts = append(d.receipts, d.line("%s: %s %d %t due %s, %q accepted %s, %v", name, r.Stream, r.Sequence,
		r.Duplicate, r.Due, r.ID, r.Accepted, kindsOf(err)))
}

// kindsOf returns the texts of the sentinels that err wraps or, without a sentinel, the text of err.
func kindsOf(err error) []string {
	if err == nil {
		return nil
	}
	var names []string
	for _, kind := range []error{
		client.ErrBadTarget, client.ErrBadTime, client.ErrTooFar, client.ErrBadOption, client.ErrBadHeaders,
		client.ErrNoBroker, client.ErrTooLarge, client.ErrFull, client.ErrUnanswered, client.ErrForeign, client.ErrGone,
		client.ErrBadKey, client.ErrConflict,
	} {
		if errors.Is(err, kind) {
			names = append(names, kind.Error())
		}
	}
	if len(names) == 0 {
		names = []string{err.Error()}
	}
	return names
}

// scenario publishes with all kinds of delays, and lets eight hours pass.
func scenario(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	w := writer{c, d, d.now()}
	receipt := w.publishIn("shop.a", 90*time.Minute, "a level")
	w.lookup("lookup", receipt)
	w.publishValid()
	w.publishInvalid()

	pass(time.Second)
	w.at("shop.g", w.began, "a time in the past")
	pass(0)
	w.publishIn("shop.g", -time.Second, "a negative delay")
	pass(0)
	p := c.Publisher(2)
	for i := range 5 {
		if _, err := p.In(t.Context(), "shop.h", 3*time.Second, fmt.Append(nil, i)); err != nil {
			t.Errorf("publish: %v", err)
		}
		pass(time.Nanosecond) // otherwise, the order of arrival would depend on the order of the answers
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	pass(20 * time.Second)
	w.publishIn("shop.b", 17*time.Minute, "before the end of the duplicate window", client.ID("b/1"))
	pass(10 * time.Second)
	w.publishIn("shop.b", 17*time.Minute, "after the duplicate window", client.ID("b/1"))
	pass(8 * time.Hour)
	w.lookup("lookup again", receipt)
}

// writer publishes, and records the answers in a diary.
type writer struct {
	c     *client.Client
	d     *diary
	began time.Time
}

func (w writer) publishIn(target string, delay time.Duration, body string, opts ...client.Option) client.Receipt {
	r, err := w.c.In(context.Background(), target, delay, []byte(body), opts...)
	w.d.receipt(fmt.Sprintf("in %s to %s", delay, target), r, err)
	return r
}

func (w writer) at(target string, when time.Time, body string, opts ...client.Option) {
	r, err := w.c.At(context.Background(), target, when, []byte(body), opts...)
	w.d.receipt(fmt.Sprintf("at %s to %s", when.Sub(w.began), target), r, err)
}

func (w writer) level(target, level, body string, opts ...client.Option) {
	r, err := w.c.Level(context.Background(), target, level, []byte(body), opts...)
	w.d.receipt(fmt.Sprintf("level %s to %s", level, target), r, err)
}

func (w writer) lookup(name string, receipt client.Receipt) {
	r, err := w.c.Lookup(context.Background(), receipt)
	w.d.receipt(name, r, err)
}

// publishValid publishes valid requests, with all options.
func (w writer) publishValid() {
	now := w.began
	w.publishIn("shop.b", 17*time.Minute, "all options",
		client.ID("b/1"), client.Expires(time.Minute), client.MaxAttempts(3),
		client.Deliver(client.ModeCore), client.TTL(90*time.Second), client.RateKey("t7"),
		client.Header("X-Mine", "1"), client.Header("X-Mine", "2"))
	w.publishIn("shop.b", 17*time.Minute, "a duplicate", client.ID("b/1"))
	w.publishIn("shop.c", 1500*time.Millisecond, "1.5 s")
	w.publishIn("shop.c", 7*time.Hour+13*time.Minute+12345678901, "odd", client.ExpiresAt(now.Add(10*time.Hour)))
	w.at("shop.d", now.Add(2*time.Hour+250*time.Microsecond), "rounded up", client.TTL(client.Forever))
	w.at("shop.d", now.Add(2*time.Hour), "on the second")
	w.level("shop.e", "30m", "thirty")
	w.level("shop.e", "7777s", "no level")
	w.level("shop.e", "10s", "until", client.Until(now.Add(12345678901)))
	w.level("shop.e", "7777s", "no level, until", client.Until(now.Add(7777123456789)))
	w.publishIn("shop.f", 365*24*time.Hour, "in a year")
}

// publishInvalid publishes requests that fail at the call, or that the server refuses.
func (w writer) publishInvalid() {
	now := w.began
	w.publishIn("shop.*", time.Minute, "")
	w.publishIn("", time.Minute, "")
	w.publishIn("delay.1m.shop", time.Minute, "")
	w.publishIn("shop.a", 367*24*time.Hour, "")
	w.publishIn("shop.a", time.Minute, "", client.Deliver("pigeon"))
	w.publishIn("shop.a", time.Minute, "", client.MaxAttempts(21))
	w.publishIn("shop.a", time.Minute, "", client.RateKey("a b"))
	w.publishIn("shop.a", time.Minute, "", client.Header("Nats-Rollup", "all"))
	w.publishIn("shop.a", time.Minute, "", client.Until(now.Add(time.Hour)))
	w.level("shop.a", "1.5s", "")
	w.level("shop.a", "soon", "")
	w.level("shop.a", "1m", "", client.Until(now.Add(time.Second)))
	w.at("shop.a", time.Time{}, "")
	w.publishIn("shop.a", time.Minute, strings.Repeat("x", 1<<20-4<<10+1))
	w.publishIn("shop.a", 301*time.Second, strings.Repeat("x", 1<<20-8<<10+1))
	w.publishIn("shop.a", 301*time.Second, strings.Repeat("x", 1<<20+1))
}
