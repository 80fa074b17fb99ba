package rivals_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/rivals/bench"
)

const (
	prefix   = "delay" // DELAY_PREFIX of the brokers
	bodySize = 256
)

var names = func() bench.Names {
	n, err := bench.NewNames(prefix)
	if err != nil {
		panic(err)
	}
	return n
}()

// A load publishes messages, and reads the arrivals.
type load struct {
	b  testing.TB
	nc *nats.Conn
	js jetstream.JetStream
}

func newLoad(b testing.TB, nc *nats.Conn) *load {
	b.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	return &load{b: b, nc: nc, js: js}
}

func (l *load) stream(cfg jetstream.StreamConfig) jetstream.Stream {
	l.b.Helper()
	s, err := l.js.CreateStream(context.Background(), cfg)
	if err != nil {
		l.b.Fatalf("create stream %s: %v", cfg.Name, err)
	}
	return s
}

// message returns the n-th message. If the message has no payload, load.run adds a payload with the number and the
// time.
type message func(n int) *nats.Msg

// run publishes messages, and returns when all messages are acknowledged. The rate zero means as fast as possible.
func (l *load) run(rate, count int, next message) bench.LoadResult {
	l.b.Helper()
	plan := bench.Load{Rate: rate, Count: count, Publishers: 1}
	return l.loaded(plan.RunWith(context.Background(), l.connect, func(n int, now time.Time) *nats.Msg {
		m := next(n)
		if m.Data == nil {
			m.Data = bench.Stamp{Number: uint32(n), Due: now}.Payload(bodySize)
		}
		return m
	}, func(int) {}))
}

// runSide publishes the messages of one side of "delaybroker bench", and returns when all messages are acknowledged.
func (l *load) runSide(side bench.Load) bench.LoadResult {
	l.b.Helper()
	return l.loaded(side.Run(context.Background(), l.connect, func(int) {}))
}

func (l *load) connect() (*nats.Conn, error) { return nats.Connect(l.nc.ConnectedUrl()) }

func (l *load) loaded(r bench.LoadResult, err error) bench.LoadResult {
	l.b.Helper()
	if err != nil {
		l.b.Fatalf("publish: %v", err)
	}
	return r
}

// await waits until all messages of a turn have arrived, or until the missing messages count as lost: see bench.Wait.
// Before it waits for duplicates, it calls complete.
func (l *load) await(target bench.StreamTarget, turn uint32, count int, complete func()) *bench.Ledger {
	l.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ledger, err := bench.Wait{Target: target, Count: count, Turn: turn, Complete: func() error {
		complete()
		return nil
	}}.Ledger(ctx)
	if err != nil {
		l.b.Fatalf("wait for the messages: %v", err)
	}
	return ledger
}

type result struct {
	bench.Tally
	late bench.Spread
	rate float64 // achieved rate of the publisher, in messages per second
	cpu  times   // CPU time of each process, per message
}

// report adds the tally and the lateness of a ledger to the result, and reports the metrics of the benchmark. The
// lateness is relative to the header Delay-Due if a broker delivered the messages, and otherwise to the requested time.
// A lost or early message fails the benchmark.
func (r *result) report(b *testing.B, l *bench.Ledger) {
	b.Helper()
	r.Tally = l.Tally()
	late := l.Promised.Spread()
	if late == nil {
		late = l.Late.Spread()
	}
	if late == nil {
		b.Fatal("no message has arrived")
	}
	r.late = *late
	if err := r.Err(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(0, "ns/op") // zero hides this metric, the duration of the whole run
	b.ReportMetric(r.rate, "msg/s")
	b.ReportMetric(float64(r.cpu.sum())/float64(time.Microsecond), "cpu-µs/msg")
	for unit, ms := range map[string]float64{"p50-ms": late.P50, "p99-ms": late.P99, "max-ms": late.Max} {
		b.ReportMetric(ms, unit)
	}
}

type table struct {
	head []string
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(title string) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Printf("\n%s\n\n", title)
	widths := make([]int, len(t.head))
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---:"
		for _, cells := range append([][]string{t.head, rule}, t.rows...) {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
	}
	for _, cells := range append([][]string{t.head, rule}, t.rows...) {
		for i, cell := range cells {
			fmt.Printf("| %*s ", widths[i], cell)
		}
		fmt.Println("|")
	}
	fmt.Println()
}

// millis formats milliseconds with about three significant digits.
func millis(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return thousands(int(ms + 0.5))
}

// thousands formats a number with commas, as in 1,234,567.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) }
