package rivals_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// BenchmarkJournal measures what a record of each delivery costs: messages of 256 bytes with a delay of one second, at
// two rates, for four seconds each, without a journal and with one, in turn.
//
//	go test -run '^$' -bench Journal -benchtime 1x ./test/rivals
//
// It takes three quarters of a minute. Compare within one run, by ratio: CPU is that of the server and of the broker.
func BenchmarkJournal(b *testing.B) {
	const load, rounds = 4 * time.Second, 2
	t := table{head: []string{"msg/s", "journal", "p50 ms", "p99 ms", "CPU µs/msg", "sum", "bytes/record"}}
	for _, rate := range []int{1_000, 10_000} {
		for round := range rounds {
			for _, kept := range []string{"off", "1h"} {
				b.Run(fmt.Sprintf("rate=%d/journal=%s/%d", rate, kept, round), func(b *testing.B) {
					for b.Loop() {
						r, bytes := withJournal(b, kept, rate, rate*int(load/time.Second))
						t.row(thousands(rate), kept, millis(r.p50), millis(r.p99), r.cpu.String(),
							fmt.Sprint(r.cpu.sum().Microseconds()), thousands(bytes))
					}
				})
			}
		}
	}
	t.print("BenchmarkJournal: a record of each delivery")
}

// withJournal runs a broker, and returns how many bytes its journal has for each record.
func withJournal(b *testing.B, kept string, rate, count int) (r result, bytes int) {
	b.Helper()
	s := startServer(b)
	ps := processes{s, startBroker(b, "NATS_URL="+s.url, "DELAY_PROVISION=create", "DELAY_JOURNAL="+kept)}
	l := newLoad(b, s.connect())
	l.stream(broker.stream)
	before := ps.cpu()
	r.rate = l.run(rate, count, func(n int) *nats.Msg { return broker.wait(n, time.Second) })
	there := l.await(broker.stream.Name, broker.subject, count)
	r.cpu = ps.cpu().since(before, count)
	r.judge(b, l.arrivals(broker.stream.Name, broker.subject, there, broker.due), count)
	if kept != "off" {
		time.Sleep(time.Second) // the last batch
		journal, err := l.js.Stream(context.Background(), "DELAY_JOURNAL")
		if err != nil {
			b.Fatal(err)
		}
		bytes = int(journal.CachedInfo().State.Bytes) / count
	}
	for _, p := range slices.Backward(ps) {
		p.kill()
	}
	return r, bytes
}
