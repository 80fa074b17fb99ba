package rivals_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
	wire "delaybroker/broker/message"
)

var seriesKept = flag.Int("series", 100_000, "how many timers recur in BenchmarkRecurring")

// A recurrer keeps what recurs.
type recurrer struct {
	name   string
	env    []string               // of its broker; nil without one
	config jetstream.StreamConfig // of the stream in which they arrive
	root   string                 // of the subjects on which they stand, with the final dot
	fired  string                 // where they arrive
	header func(every time.Duration, cron string) nats.Header
	// planned is when what has arrived was to fire, and with which the next of the same subject is. Either is zero where
	// it does not say so.
	planned func(m jetstream.Msg) (of string, this, next time.Time)
}

var recurrers = []recurrer{
	{
		name: "named timers", env: []string{"DELAY_TIMERS=on", "DELAY_INSTANCE=one"},
		config: jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}},
		root:   "delaytimer.", fired: "orders.expire",
		header: func(every time.Duration, cron string) nats.Header {
			if cron != "" {
				return nats.Header{wire.HeaderCron: {cron}}
			}
			return nats.Header{wire.HeaderEvery: {every.String()}}
		},
		planned: func(m jetstream.Msg) (of string, this, next time.Time) {
			if m.Headers().Get(wire.HeaderRound) != "1" { // as for the server, which does not say it of the first
				this, _ = time.Parse(time.RFC3339Nano, m.Headers().Get(wire.HeaderDue))
			}
			return "", this, time.Time{}
		},
	},
	{
		name: "the server's schedules", root: "schedule.", fired: "fired.expire",
		config: jetstream.StreamConfig{
			Name: "SCHEDULES", Subjects: []string{"schedule.>", "fired.>"}, AllowMsgSchedules: true,
		},
		header: func(every time.Duration, cron string) nats.Header {
			if cron == "" {
				cron = "@every " + every.String()
			}
			return nats.Header{"Nats-Schedule": {cron}, "Nats-Schedule-Target": {"fired.expire"}}
		},
		planned: func(m jetstream.Msg) (of string, this, next time.Time) {
			next, _ = time.Parse(time.RFC3339Nano, m.Headers().Get("Nats-Schedule-Next"))
			return m.Headers().Get("Nats-Scheduler"), time.Time{}, next
		},
	},
}

// A spread says when they are due, of so long an interval.
type spread struct {
	name  string
	every time.Duration
	cron  string        // all at one instant
	over  time.Duration // in which they are set, one after the other; zero for as fast as can be
	watch time.Duration // how long it is measured; a multiple of every
}

// BenchmarkRecurring measures what timers cost that recur each minute, each with a subject of its own and a body of 256
// bytes, beside the server's own schedules: CPU for each firing, and how late they are stored at the target after the
// time that the broker, or the server, has planned for them. All are due on the minute (a cron), or each a minute after
// the one before, set over a minute.
//
//	go test -run '^$' -bench Recurring/on-the-minute -benchtime 1x ./test/rivals                   # 100,000 of each
//	go test -run '^$' -bench Recurring/over-the-minute -benchtime 1x ./test/rivals -series 10000
//
// It reads /proc, and takes eight minutes for each. It watches two minutes. The first firing of each counts for CPU,
// but not for lateness.
func BenchmarkRecurring(b *testing.B) {
	for _, s := range []spread{
		{name: "on the minute", every: time.Minute, cron: "0 * * * * *", watch: 2 * time.Minute},
		{name: "over the minute", every: time.Minute, over: time.Minute, watch: 2 * time.Minute},
	} {
		b.Run(strings.ReplaceAll(s.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				title := fmt.Sprintf("BenchmarkRecurring: %s, each minute, %s", thousands(*seriesKept), s.name)
				s.table(b, *seriesKept).print(title)
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// TestRecurring: the benchmark measures what it says: with few, and each second, all fire on either side, none early by
// the broker's word.
func TestRecurring(t *testing.T) {
	t.Parallel()
	for _, s := range []spread{
		{name: "on the second", every: time.Second, cron: "* * * * * *", watch: 3 * time.Second},
		{name: "over the second", every: time.Second, over: time.Second, watch: 3 * time.Second},
	} {
		for _, r := range recurrers {
			t.Run(s.name+", "+r.name, func(t *testing.T) {
				t.Parallel()
				m := s.measure(t, r, 20)
				if late := m.late.Spread(); m.fired < 20 || late == nil || r.env != nil && late.Min < 0 {
					t.Errorf("%d have fired, late %+v", m.fired, late)
				}
			})
		}
	}
}

// table measures both.
func (s spread) table(b testing.TB, count int) *table {
	t := &table{head: []string{"", "fired", "of", "p50 ms", "p99 ms", "max ms", "CPU µs/firing", "CPU %"}}
	for _, r := range recurrers {
		m := s.measure(b, r, count)
		late := m.late.Spread()
		if late == nil {
			b.Fatalf("%s: nothing has fired a second time", r.name)
		}
		want := count * int(s.watch/s.every)
		t.row(r.name, thousands(m.fired), thousands(want), millis(late.P50), millis(late.P99), millis(late.Max),
			m.cpu.since(make(times, len(m.cpu)), max(1, m.fired)).String(), percent(m.cpu.sum().Seconds()/s.watch.Seconds()))
	}
	return t
}

// measured is what came of one side.
type measured struct {
	fired int
	late  *bench.Lateness
	cpu   times
}

// measure keeps so many, on a server of their own.
func (s spread) measure(b testing.TB, by recurrer, count int) measured {
	server := startServer(b)
	ps := processes{server}
	if by.env != nil {
		ps = append(ps, startBroker(b, append(by.env, "NATS_URL="+server.url, "DELAY_PROVISION=create")...))
	}
	l := newLoad(b, server.connect())
	l.stream(by.config)
	s.set(l, by, count)
	if s.cron != "" { // the first of all have fired
		time.Sleep(time.Until(time.Now().Truncate(s.every).Add(s.every + s.every/2)))
	}
	start, before := time.Now(), ps.cpu()
	time.Sleep(s.watch)
	m := measured{cpu: ps.cpu(), late: bench.NewLateness()}
	for i := range m.cpu {
		m.cpu[i] -= before[i]
	}
	m.read(l, by, start, start.Add(s.watch))
	for _, p := range slices.Backward(ps) {
		p.kill()
	}
	return m
}

// set sets all.
func (s spread) set(l *load, by recurrer, count int) {
	l.b.Helper()
	js, err := jetstream.New(l.nc, jetstream.WithPublishAsyncMaxPending(1024))
	if err != nil {
		l.b.Fatal(err)
	}
	start := time.Now()
	acks := make([]jetstream.PubAckFuture, count)
	for n := range count {
		time.Sleep(time.Until(start.Add(s.over * time.Duration(n) / time.Duration(count))))
		acks[n], err = js.PublishMsgAsync(&nats.Msg{
			Subject: by.root + strconv.Itoa(n) + ".orders.expire", Header: by.header(s.every, s.cron),
			Data: make([]byte, bodySize),
		}, jetstream.WithStallWait(time.Minute))
		if err != nil {
			l.b.Fatalf("set %d: %v", n, err)
		}
	}
	for n, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			l.b.Fatalf("set %d: %v", n, err)
		}
	}
}

// read reads what has arrived between two times.
func (m *measured) read(l *load, by recurrer, from, to time.Time) {
	l.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := l.js.OrderedConsumer(ctx, by.config.Name,
		jetstream.OrderedConsumerConfig{FilterSubjects: []string{by.fired}})
	if err != nil {
		l.b.Fatal(err)
	}
	all, err := c.Messages()
	if err != nil {
		l.b.Fatal(err)
	}
	defer all.Stop()
	due := make(map[string]time.Time) // of the next, by subject
	for {
		msg, err := all.Next(jetstream.NextContext(ctx))
		if err != nil {
			l.b.Fatalf("read what has arrived: %v", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			l.b.Fatal(err)
		}
		of, this, next := by.planned(msg)
		if this.IsZero() {
			this = due[of]
		}
		if due[of] = next; !meta.Timestamp.Before(from) && meta.Timestamp.Before(to) {
			m.fired++
			if !this.IsZero() {
				m.late.Record(meta.Timestamp.Sub(this))
			}
		}
		if meta.NumPending == 0 || meta.Timestamp.After(to) {
			return
		}
	}
}
