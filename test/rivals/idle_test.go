package rivals_test

import (
	"strconv"
	"testing"
	"time"
)

// BenchmarkIdle measures what 40 lanes cost while nothing is published: with no broker, one and three, on one server
// and on a cluster of three with as many replicas.
//
//	go test -run '^$' -bench Idle -benchtime 1x ./test/rivals
//
// It takes eight minutes. The lanes are the 32 levels, the intake and seven waits between refused deliveries. CPU is of
// one core, of all brokers and of all servers together, over a minute, which is the longest interval at which a broker
// hears from a lane of a cluster. Messages are those that the servers received from clients, sent to clients and
// received from each other in a second. With no broker the streams are there all the same: what the servers spend then
// is theirs.
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
