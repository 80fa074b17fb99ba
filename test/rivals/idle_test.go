package rivals_test

import (
	"strconv"
	"testing"
	"time"
)

// BenchmarkIdle measures the cost of 40 lanes while nothing is published, without a broker and with one and three, on
// one server and on a cluster of three with three replicas.
//
//	go test -run '^$' -bench Idle -benchtime 1x ./test/rivals
//
// It takes eight minutes. The lanes are 32 levels, the intake and seven retry lanes. CPU is in per cent of one core,
// for all brokers and for all servers together. It is measured over a minute: the longest interval at which a broker
// asks about a lane of a cluster. Messages are counted per second: from clients to servers, from servers to clients,
// and between servers. The row without a broker has the same streams, so it shows what the servers need for themselves.
func BenchmarkIdle(b *testing.B) {
	const settle, watch, retry = 10 * time.Second, time.Minute, "DELAY_RETRY=1s,5s,30s,1m,2m,5m,10m"
	t := table{head: []string{"servers", "brokers", "lanes", "brokers CPU %", "servers CPU %", "brokers to servers/s",
		"servers to brokers/s", "between servers/s"}}
	for _, servers := range []int{1, 3} {
		b.Run("servers="+strconv.Itoa(servers), func(b *testing.B) {
			f := startFleet(b, servers)
			f.grow(b, 1, retry) // makes the streams
			f.stop()
			for _, n := range []int{0, 1, 3} {
				b.Run("brokers="+strconv.Itoa(n), func(b *testing.B) {
					for b.Loop() {
						lanes := "-"
						if n > 0 {
							lanes = f.grow(b, n, retry)
						}
						time.Sleep(settle)
						was, brokers, all := f.servers.traffic(), f.brokers.cpu().sum(), f.servers.cpu().sum()
						start := time.Now()
						time.Sleep(watch)
						took := time.Since(start)
						brokers, all = f.brokers.cpu().sum()-brokers, f.servers.cpu().sum()-all
						now := f.servers.traffic()
						each := func(count int64) string {
							return strconv.FormatFloat(float64(count)/took.Seconds(),
								'f', 1, 64)
						}
						t.row(strconv.Itoa(servers), strconv.Itoa(n), lanes,
							percent(float64(brokers)/float64(took)), percent(float64(all)/float64(took)),
							each(now.InClient-was.InClient), each(now.OutClient-was.OutClient),
							each(now.In-now.InClient-was.In+was.InClient))
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(100*float64(brokers)/float64(took), "brokers-%")
						b.ReportMetric(100*float64(all)/float64(took), "servers-%")
					}
				})
			}
			f.end()
		})
	}
	t.print("BenchmarkIdle: 40 lanes, nothing to do")
}
