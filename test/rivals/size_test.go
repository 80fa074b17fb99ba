package rivals_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/bench"
	"delaybroker/broker/capacity"
	"delaybroker/levels"
)

// BenchmarkSize compares the estimates of "delaybroker size" with measurements of three loads: 1,000 and 10,000
// messages a second with a delay of one second, and a million pending messages in one level. Each message has 256
// bytes.
//
//	go test -run '^$' -bench Size -benchtime 1x ./test/rivals
//
// It takes one minute. CPU is the number of busy cores, and memory is the growth of the server's resident memory. The
// coefficients of package capacity are from another run, so a ratio has the noise of two runs.
func BenchmarkSize(b *testing.B) {
	b.Setenv("GOGC", "100") // the default of nats-server; package natstest would set 400
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
			ps := startBoth(b)
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

// plainLoad returns a load of plain messages for the estimate.
func plainLoad(rate float64, delay time.Duration) capacity.Load {
	return capacity.Load{
		Rate: rate, Delay: delay, Bytes: bodySize, Replicas: 1, Streams: 40, Ladder: levels.Default(),
		Server: capacity.Server{Memory: 64e9, Disk: 2e12, Cores: 16},
	}
}
