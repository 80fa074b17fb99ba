package rivals_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
	wire "delaybroker/broker/message"
)

var dueKept = flag.Int("due", 50_000, "how many named timers are due at one instant in BenchmarkDue")

// BenchmarkDue measures named timers that are all due at one instant, each with a subject of its own and a body of
// 256 bytes, beside the server's own schedules: when the target has the last one after that, and the CPU of one firing,
// from the reading of the markers until the entries are removed.
//
//	go test -run '^$' -bench Due -benchtime 1x ./test/rivals                   # 50,000 of each
//	go test -run '^$' -bench Due -benchtime 1x ./test/rivals -due 5000 -timers.side broker
//
// It reads /proc, and takes a minute for each.
func BenchmarkDue(b *testing.B) {
	t := table{head: []string{"", "count", "last ms", "settled ms", "CPU µs/firing"}}
	for _, k := range keepers {
		if *timersSide != "both" && *timersSide != k.side {
			continue
		}
		b.Run(strings.ReplaceAll(k.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				t.row(dueAtOnce(b, k, *dueKept)...)
				b.ReportMetric(0, "ns/op")
			}
		})
	}
	t.print(fmt.Sprintf("BenchmarkDue: %s of 256 bytes, due at one instant", thousands(*dueKept)))
}

// TestDue: the benchmark measures what it says, with few on either side.
func TestDue(t *testing.T) {
	t.Parallel()
	for _, k := range keepers {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if row := dueAtOnce(t, k, 20); len(row) != 5 {
				t.Errorf("got %v", row)
			}
		})
	}
}

// dueAtOnce measures so many of one keeper.
func dueAtOnce(b testing.TB, by keeper, count int) []string {
	server := startServer(b)
	ps := processes{server}
	if by.env != nil {
		ps = append(ps, startBroker(b, append(by.env, "NATS_URL="+server.url, "DELAY_PROVISION=create")...))
	}
	l := newLoad(b, server.connect())
	l.stream(by.config)
	due := time.Now().Add(20*time.Second + time.Duration(count)*300*time.Microsecond).Truncate(time.Second)
	js, err := jetstream.New(l.nc, jetstream.WithPublishAsyncMaxPending(2048))
	if err != nil {
		b.Fatal(err)
	}
	for n := range count {
		header := nats.Header{"Nats-Schedule": {"@at " + due.UTC().Format(time.RFC3339)},
			"Nats-Schedule-Target": {by.fired}}
		if by.env != nil {
			header = nats.Header{wire.HeaderUntil: {due.UTC().Format(time.RFC3339)},
				"Nats-Expected-Last-Subject-Sequence": {"0"}}
		}
		if _, err := js.PublishMsgAsync(&nats.Msg{
			Subject: by.root + fmt.Sprint(n) + ".orders.expire", Header: header, Data: make([]byte, bodySize),
		}, jetstream.WithStallWait(time.Minute)); err != nil {
			b.Fatalf("set %d: %v", n, err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		b.Fatal("not all are set")
	}
	time.Sleep(time.Until(due.Add(-6 * time.Second))) // markers are read five seconds before they leave their level
	before := ps.cpu()
	time.Sleep(time.Until(due))
	state := func(stream string) jetstream.StreamState {
		s, err := l.js.Stream(context.Background(), stream)
		if err != nil {
			b.Fatal(err)
		}
		return s.CachedInfo().State
	}
	arrivals := func() uint64 {
		s, err := l.js.Stream(context.Background(), by.config.Name)
		if err != nil {
			b.Fatal(err)
		}
		info, err := s.Info(context.Background(), jetstream.WithSubjectFilter(by.fired))
		if err != nil {
			b.Fatal(err)
		}
		return info.State.Subjects[by.fired]
	}
	end := due.Add(2 * time.Minute)
	for arrivals() < uint64(count) {
		if time.Now().After(end) {
			b.Fatalf("only %d of %d have arrived", arrivals(), count)
		}
		time.Sleep(20 * time.Millisecond)
	}
	last := state(by.config.Name).LastTime
	for by.env != nil && state(by.home).Msgs > uint64(count)+2 { // what became of each, and the cursor
		if time.Now().After(end) {
			b.Fatalf("%d entries are left", state(by.home).Msgs)
		}
		time.Sleep(20 * time.Millisecond)
	}
	settled := time.Now()
	cpu := ps.cpu().since(before, count)
	for i := len(ps) - 1; i >= 0; i-- {
		ps[i].kill()
	}
	return []string{
		by.name, thousands(count), millis(bench.Milliseconds(last.Sub(due))), millis(bench.Milliseconds(settled.Sub(due))),
		cpu.String(),
	}
}
