package rivals_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"delaybroker/broker/bench"
)

// BenchmarkIdle measures the cost of 40 lanes while no message is published: with no broker, one broker and three
// brokers, on one server, and on a cluster of three servers with three replicas.
//
//	go test -run '^$' -bench Idle -benchtime 1x ./test/rivals
//
// It takes eight minutes. The lanes are 32 levels, the intake and seven retry lanes. The CPU columns are the sum of all
// brokers and the sum of all servers, in per cent of one core. A measurement takes a minute, because a broker requests
// the state of a lane in a cluster at intervals of up to a minute. The last three columns are messages per second: from
// clients to servers, from servers to clients, and between servers. The row without a broker has the same streams, so
// it is the cost of the servers alone.
func BenchmarkIdle(b *testing.B) {
	const settle, duration, retry = 10 * time.Second, time.Minute, "DELAY_RETRY=1s,5s,30s,1m,2m,5m,10m"
	t := table{head: []string{"servers", "brokers", "lanes", "brokers CPU %", "servers CPU %", "brokers to servers/s",
		"servers to brokers/s", "between servers/s"}}
	for _, servers := range []int{1, 3} {
		b.Run("servers="+strconv.Itoa(servers), func(b *testing.B) {
			f := startFleet(b, servers)
			f.grow(b, 1, retry) // creates the streams
			f.stop()
			for _, n := range []int{0, 1, 3} {
				b.Run("brokers="+strconv.Itoa(n), func(b *testing.B) {
					for b.Loop() {
						lanes := "-"
						if n > 0 {
							lanes = f.grow(b, n, retry)
						}
						time.Sleep(settle)
						before, brokers, all := f.servers.traffic(), f.brokers.cpu().sum(), f.servers.cpu().sum()
						start := time.Now()
						time.Sleep(duration)
						took := time.Since(start)
						brokers, all = f.brokers.cpu().sum()-brokers, f.servers.cpu().sum()-all
						after := f.servers.traffic()
						perSecond := func(count int64) string {
							return strconv.FormatFloat(float64(count)/took.Seconds(),
								'f', 1, 64)
						}
						t.row(strconv.Itoa(servers), strconv.Itoa(n), lanes,
							percent(float64(brokers)/float64(took)), percent(float64(all)/float64(took)),
							perSecond(after.InClient-before.InClient), perSecond(after.OutClient-before.OutClient),
							perSecond(after.In-after.InClient-before.In+before.InClient))
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(100*float64(brokers)/float64(took), "brokers-%")
						b.ReportMetric(100*float64(all)/float64(took), "servers-%")
					}
				})
			}
			f.end()
		})
	}
	t.print("BenchmarkIdle: 40 lanes without messages")
}

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
