package rivals_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/bench"
)

// BenchmarkPending measures the cost of a million pending messages of 256 bytes, in one level and in five levels. No
// message is due during the run.
//
//	go test -run '^$' -bench Pending -benchtime 1x ./test/rivals
//
// It takes two minutes, and reads /proc. Memory is the resident memory of the broker and of the server, before the
// first publish and five seconds after the last. Then the benchmark kills the broker and starts another: "ready" is the
// time until this broker is ready, and "restarted" its memory. "idle" is the CPU time of a process in the following
// twenty seconds, in per cent of one core.
func BenchmarkPending(b *testing.B) {
	const count, settle, duration = 1_000_000, 5 * time.Second, 20 * time.Second
	t := table{head: []string{"pending in", "broker MB", "with 1M", "restarted", "server MB", "with 1M", "ready ms",
		"broker idle %", "server idle %"}}
	for _, v := range []struct {
		name   string
		levels []string
	}{
		{"2h", []string{"2h"}},
		{"5m 10m 30m 1h 2h", []string{"5m", "10m", "30m", "1h", "2h"}},
	} {
		b.Run("levels="+strconv.Itoa(len(v.levels)), func(b *testing.B) {
			for b.Loop() {
				ps := startBoth(b)
				server, broker := ps[0], ps[1]
				time.Sleep(settle)
				brokerBefore, serverBefore := broker.memory(), server.memory()
				newLoad(b, server.connect()).run(0, count, func(n int) *nats.Msg {
					return &nats.Msg{Subject: "delay." + v.levels[n%len(v.levels)] + "." + names.Target(0)}
				})
				time.Sleep(settle)
				brokerAfter, serverAfter := broker.memory(), server.memory()

				broker.kill()
				start := time.Now()
				broker = startBroker(b, "NATS_URL="+server.url, "DELAY_PROVISION=create")
				ready := time.Since(start)
				time.Sleep(settle)
				restarted := broker.memory()
				brokerIdle, serverIdle := idle(duration, broker, server)
				broker.kill()
				server.kill()

				t.row(v.name, whole(brokerBefore), whole(brokerAfter), whole(restarted), whole(serverBefore), whole(serverAfter),
					millis(bench.Milliseconds(ready)), percent(brokerIdle), percent(serverIdle))
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(brokerAfter-brokerBefore, "broker-MB")
				b.ReportMetric(serverAfter-serverBefore, "server-MB")
				b.ReportMetric(bench.Milliseconds(ready), "ready-ms")
				b.ReportMetric(100*brokerIdle, "idle-%")
			}
		})
	}
	t.print("BenchmarkPending: 1,000,000 messages of 256 bytes pending")
}

// idle returns the CPU time that each of two processes uses during the time d, as a share of one core.
func idle(d time.Duration, first, second *process) (float64, float64) {
	start := time.Now()
	firstBefore, secondBefore := first.cpu(), second.cpu()
	time.Sleep(d)
	took := time.Since(start)
	return float64(first.cpu()-firstBefore) / float64(took), float64(second.cpu()-secondBefore) / float64(took)
}

func whole(f float64) string   { return strconv.FormatFloat(f, 'f', 0, 64) }
func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 2, 64) }
