package rivals_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"delaybroker/broker/bench"
)

// BenchmarkJournal measures the cost of the journal, which has a record of each delivery. The messages have 256 bytes
// and a delay of one second. Each rate is published for four seconds, in turns without a journal and with a journal.
//
//	go test -run '^$' -bench Journal -benchtime 1x ./test/rivals
//
// It takes 45 seconds. Compare only ratios of results of the same run. CPU is the CPU time of the server and of the
// broker.
func BenchmarkJournal(b *testing.B) {
	const load, rounds = 4 * time.Second, 2
	t := table{head: []string{"msg/s", "journal", "p50 ms", "p99 ms", "CPU µs/msg", "sum", "bytes/record"}}
	for _, rate := range []int{1_000, 10_000} {
		for round := range rounds {
			for _, retention := range []string{"off", "1h"} {
				b.Run(fmt.Sprintf("rate=%d/journal=%s/%d", rate, retention, round), func(b *testing.B) {
					for b.Loop() {
						r, bytes := withJournal(b, retention, rate, rate*int(load/time.Second))
						t.row(thousands(rate), retention, millis(r.late.P50), millis(r.late.P99), r.cpu.String(),
							fmt.Sprint(r.cpu.sum().Microseconds()), thousands(bytes))
					}
				})
			}
		}
	}
	t.print("BenchmarkJournal: a record of each delivery")
}

// withJournal runs a broker with a setting of DELAY_JOURNAL. Bytes is the number of bytes for each record of the
// journal.
func withJournal(b *testing.B, retention string, rate, count int) (r result, bytes int) {
	b.Helper()
	d := delayer{name: "broker", side: bench.Broker, start: func(b *testing.B) processes {
		return startBoth(b, "DELAY_JOURNAL="+retention)
	}}
	if retention != "off" {
		d.finished = func(l *load) {
			time.Sleep(time.Second) // the broker stores the last batch of records
			journal, err := l.js.Stream(context.Background(), "DELAY_JOURNAL")
			if err != nil {
				b.Fatal(err)
			}
			bytes = int(journal.CachedInfo().State.Bytes) / count
		}
	}
	r = d.run(b, bench.Load{Rate: rate, Count: count, Delays: []bench.Delay{{Duration: time.Second}}})
	return r, bytes
}
