package rivals_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"delaybroker/broker/bench"
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
						t.row(thousands(rate), kept, millis(r.late.P50), millis(r.late.P99), r.cpu.String(),
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
	d := delayer{name: "broker", side: bench.Broker, start: func(b *testing.B) processes {
		return startBoth(b, "DELAY_JOURNAL="+kept)
	}}
	if kept != "off" {
		d.over = func(l *load) {
			time.Sleep(time.Second) // the last batch
			journal, err := l.js.Stream(context.Background(), "DELAY_JOURNAL")
			if err != nil {
				b.Fatal(err)
			}
			bytes = int(journal.CachedInfo().State.Bytes) / count
		}
	}
	r = d.run(b, bench.Load{Rate: rate, Count: count, Delays: []bench.Delay{{Duration: time.Second}}}, 0)
	return r, bytes
}
