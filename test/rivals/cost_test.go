package rivals_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/cmd/delaybroker/capacity"
	"delaybroker/levels"
	"delaybroker/test/rivals/bench"
)

// BenchmarkIdle measures the cost of lanes without messages. It runs no broker, one broker and three brokers, on one
// server and on a cluster of three servers with three replicas.
//
//	go test -run '^$' -bench Idle -benchtime 1x ./test/rivals
//
// It takes eight minutes. The lanes are 32 levels, the intake, seven retry lanes, the timers and the paused messages.
// The CPU columns are the sum of all brokers and the sum of all servers, in per cent of one core. A measurement takes a
// minute, because a broker requests the state of a lane in a cluster at intervals of up to a minute. The last three
// columns are messages per second: from clients to servers, from servers to clients, and between servers. The row
// without a broker has the same streams, so it is the cost of the servers alone.
func BenchmarkIdle(b *testing.B) {
	const settle, duration, retry = 10 * time.Second, time.Minute, "DELAY_RETRY=1s,5s,30s,1m,2m,5m,10m"
	t := table{head: []string{"servers", "brokers", "brokers CPU %", "servers CPU %", "brokers to servers/s",
		"servers to brokers/s", "between servers/s"}}
	for _, servers := range []int{1, 3} {
		b.Run("servers="+strconv.Itoa(servers), func(b *testing.B) {
			f := startFleet(b, servers)
			f.grow(b, 1, retry) // the first broker creates the streams
			f.stop()
			for _, n := range []int{0, 1, 3} {
				b.Run("brokers="+strconv.Itoa(n), func(b *testing.B) {
					for b.Loop() {
						f.grow(b, n, retry)
						time.Sleep(settle)
						before, brokers, all := f.servers.traffic(), f.brokers.cpu().sum(), f.servers.cpu().sum()
						start := time.Now()
						time.Sleep(duration)
						took := time.Since(start)
						brokers, all = f.brokers.cpu().sum()-brokers, f.servers.cpu().sum()-all
						after := f.servers.traffic()
						perSecond := func(count int64) string {
							return strconv.FormatFloat(float64(count)/took.Seconds(), 'f', 1, 64)
						}
						t.row(strconv.Itoa(servers), strconv.Itoa(n),
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
	t.print("BenchmarkIdle: lanes without messages")
}

// BenchmarkJournal measures the cost of the journal, which has a record of each delivery. The messages have 256 bytes
// and a delay of one second. Twice for each rate, the load publishes for four seconds without a journal, and then for
// four seconds with a journal.
//
//	go test -run '^$' -bench Journal -benchtime 1x ./test/rivals
//
// It takes 45 seconds. Compare only ratios of results of the same run. CPU is the CPU time of the server and of the
// broker.
func BenchmarkJournal(b *testing.B) {
	const duration, rounds = 4 * time.Second, 2
	t := table{head: []string{"msg/s", "journal", "p50 ms", "p99 ms", "CPU µs/msg", "sum", "bytes/record"}}
	for _, rate := range []int{1_000, 10_000} {
		for round := range rounds {
			for _, retention := range []string{"off", "1h"} {
				b.Run(fmt.Sprintf("rate=%d/journal=%s/%d", rate, retention, round), func(b *testing.B) {
					for b.Loop() {
						r, bytes := measureJournal(b, retention, rate, rate*int(duration/time.Second))
						t.row(thousands(rate), retention, millis(r.late.P50), millis(r.late.P99), r.cpu.String(),
							fmt.Sprint(r.cpu.sum().Microseconds()), thousands(bytes))
					}
				})
			}
		}
	}
	t.print("BenchmarkJournal: a record of each delivery")
}

// measureJournal measures a broker under load, with DELAY_JOURNAL=retention. The result bytes is the size of a record
// of the journal.
func measureJournal(b *testing.B, retention string, rate, count int) (r result, bytes int) {
	b.Helper()
	d := delayer{name: "broker", side: bench.Broker, start: func(b *testing.B) processes {
		return startServerAndBroker(b, "DELAY_JOURNAL="+retention)
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

// BenchmarkSize compares the estimates of "delaybroker size" with measurements of three loads: 1,000 and 10,000
// messages a second with a delay of one second, and a million pending messages in one level. Each message has 256
// bytes.
//
//	go test -run '^$' -bench Size -benchtime 1x ./test/rivals
//
// It takes one minute. CPU is the number of busy cores, and memory is the growth of the server's resident memory. The
// coefficients of package capacity are from another run, so a ratio has the noise of two runs.
func BenchmarkSize(b *testing.B) {
	b.Setenv("GOGC", "100") // the default of nats-server; package natstest sets 400 for tests
	t := table{head: []string{"load", "what", "size", "measured", "measured ÷ size"}}
	compare := func(load, what string, size, measured float64, digits int) {
		text := func(f float64) string { return strconv.FormatFloat(f, 'f', digits, 64) }
		t.row(load, what, text(size), text(measured), strconv.FormatFloat(measured/size, 'f', 2, 64))
		b.ReportMetric(0, "ns/op")
	}
	for _, rate := range []int{1_000, 10_000} {
		const duration = 8 * time.Second
		name := fmt.Sprintf("rate=%d", rate)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := delayers[0].run(b, bench.Load{
					Rate: rate, Count: rate * int(duration/time.Second), Delays: []bench.Delay{{Duration: time.Second}},
				})
				need := capacity.NeedOf(plainLoad(float64(rate), time.Second))
				cores := func(perMessage time.Duration) float64 { return perMessage.Seconds() * float64(rate) }
				load := thousands(rate) + " msg/s"
				compare(load, "CPU of servers, cores", need.ServerCPU.Sum(), cores(r.cpu[0]), 2)
				compare(load, "CPU of brokers, cores", need.BrokerCPU.Sum(), cores(r.cpu[1]), 2)
			}
		})
	}
	b.Run("waiting", func(b *testing.B) {
		for b.Loop() {
			const count, wait, settle = 1_000_000, 2 * time.Hour, 5 * time.Second
			ps := startServerAndBroker(b)
			time.Sleep(settle)
			before := ps[0].memory()
			l := newLoad(b, ps[0].connect())
			l.run(0, count, func(int) *nats.Msg { return &nats.Msg{Subject: "delay.2h." + names.Target(0)} })
			time.Sleep(settle)
			lane, err := l.js.Stream(context.Background(), "DELAY_2h")
			if err != nil {
				b.Fatal(err)
			}
			need := capacity.NeedOf(plainLoad(count/wait.Seconds(), wait))
			load := thousands(count) + " waiting"
			compare(load, "memory of servers, MB", need.ServerMemory/1e6, ps[0].memory()-before, 0)
			compare(load, "disk, MB", need.Disk/1e6, float64(lane.CachedInfo().State.Bytes)/1e6, 0)
			ps[1].kill()
			ps[0].kill()
		}
	})
	t.print("BenchmarkSize: the estimate and the measurement")
}

func plainLoad(rate float64, delay time.Duration) capacity.Load {
	return capacity.Load{
		Rate: rate, Delay: delay, Bytes: bodySize, Replicas: 1, Streams: 40, Ladder: levels.Default(),
		Server: capacity.Server{Memory: 64e9, Disk: 2e12, Cores: 16},
	}
}
