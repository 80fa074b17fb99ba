package rivals_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
)

const (
	prefix   = "delay" // of the brokers
	bodySize = 256
)

// names are the subjects and streams of the benchmarks.
var names = func() bench.Names {
	n, err := bench.NewNames(prefix)
	if err != nil {
		panic(err)
	}
	return n
}()

// load publishes, and reads what arrives.
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

// stream creates a stream for the subjects.
func (l *load) stream(cfg jetstream.StreamConfig) jetstream.Stream {
	l.b.Helper()
	s, err := l.js.CreateStream(context.Background(), cfg)
	if err != nil {
		l.b.Fatalf("create stream %s: %v", cfg.Name, err)
	}
	return s
}

// message makes the n-th message at the present time. Where it has no payload, it gets one with its number.
type message func(n int) *nats.Msg

// run publishes count messages at a rate, or as fast as it can at the rate 0, and awaits their acknowledgements.
func (l *load) run(rate, count int, next message) bench.Loaded {
	l.b.Helper()
	order := bench.Load{Rate: rate, Count: count, Publishers: 1}
	return l.loaded(order.RunWith(context.Background(), l.connect, func(n int, now time.Time) *nats.Msg {
		m := next(n)
		if m.Data == nil {
			m.Data = bench.Stamp{Number: uint32(n), Due: now}.Payload(bodySize)
		}
		return m
	}, func(int) {}))
}

// order publishes messages of one of the sides of "delaybroker bench".
func (l *load) order(order bench.Load) bench.Loaded {
	l.b.Helper()
	return l.loaded(order.Run(context.Background(), l.connect, func(int) {}))
}

func (l *load) connect() (*nats.Conn, error) { return nats.Connect(l.nc.ConnectedUrl()) }

func (l *load) loaded(r bench.Loaded, err error) bench.Loaded {
	l.b.Helper()
	if err != nil {
		l.b.Fatalf("publish: %v", err)
	}
	return r
}

// await waits until count messages of a turn have arrived, or no more come. Complete is called before copies are waited
// for.
func (l *load) await(target bench.Stored, turn uint32, count int, whole func()) *bench.Ledger {
	l.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ledger, err := bench.Wait{Target: target, Count: count, Turn: turn, Complete: func() error {
		whole()
		return nil
	}}.Ledger(ctx)
	if err != nil {
		l.b.Fatalf("wait for the messages: %v", err)
	}
	return ledger
}

// result is the result of one run.
type result struct {
	bench.Tally
	late      bench.Spread
	rate      float64 // achieved by the publisher
	published time.Time
	cpu       times // per message
}

// judge takes what a ledger says. Lateness is that after the promised time, where a broker says it. Lost or early
// messages fail the benchmark.
func (r *result) judge(b *testing.B, l *bench.Ledger) {
	b.Helper()
	r.Tally = l.Tally()
	late := l.Promised.Spread()
	if late == nil {
		late = l.Late.Spread()
	}
	if late == nil {
		b.Fatal("nothing arrived")
	}
	r.late = *late
	if err := r.Err(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(0, "ns/op") // hides it: it would be the time of the whole run
	b.ReportMetric(r.rate, "msg/s")
	b.ReportMetric(float64(r.cpu.sum())/float64(time.Microsecond), "cpu-µs/msg")
	for unit, ms := range map[string]float64{"p50-ms": late.P50, "p99-ms": late.P99, "max-ms": late.Max} {
		b.ReportMetric(ms, unit)
	}
}
