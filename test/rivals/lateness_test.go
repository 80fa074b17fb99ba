package rivals_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"delaybroker/test/rivals/bench"
)

// A delayer is a system that delays messages: a side of "delaybroker bench", with its own server.
type delayer struct {
	name string
	side bench.Side
	// start starts the processes of the system. The load publishes to the first process.
	start    func(b *testing.B) processes
	finished func(l *load) // if not nil, called after the last arrival and before the end of the processes
}

// delayers are the compared systems. The system "embedded" is a broker with a nats-server in the same process, which
// "delaybroker bench" does not measure.
var delayers = []delayer{
	{name: "broker", side: bench.Broker, start: func(b *testing.B) processes { return startServerAndBroker(b) }},
	{name: "embedded", side: bench.Broker, start: func(b *testing.B) processes {
		return processes{startBroker(b, "DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR="+b.TempDir())}
	}},
	{name: "scheduler", side: bench.Scheduler, start: func(b *testing.B) processes { return processes{startServer(b)} }},
}

func startServerAndBroker(b *testing.B, env ...string) processes {
	s := startServer(b)
	return processes{s, startBroker(b, append(env, "NATS_URL="+s.url, "DELAY_PROVISION=create")...)}
}

// BenchmarkLateness measures the lateness: the time at which the target's stream stored a message, minus the message's
// due time. The messages have 256 bytes and a delay of one second. The load publishes at each rate for four seconds.
//
//	go test -run '^$' -bench Lateness -benchtime 1x ./test/rivals
//
// It takes two minutes. The server, the broker and the publisher are separate processes that are connected over TCP
// loopback. The systems take turns at each rate. The machine's speed changes from run to run, so compare only ratios of
// results of the same run. A message of the broker is due one second after its level has stored it, and a message of
// the scheduler one second after its publish. CPU is the CPU time from the first publish to the last arrival: of the
// server, and of the broker if it is another process.
func BenchmarkLateness(b *testing.B) {
	const delay, load = time.Second, 4 * time.Second
	t := table{head: []string{"msg/s", "rival", "p50 ms", "p99 ms", "max ms", "min ms", "achieved/s", "lost", "twice",
		"CPU µs/msg"}}
	for _, rate := range []int{1_000, 10_000, 20_000, 40_000} {
		for _, d := range delayers {
			b.Run(fmt.Sprintf("rate=%d/%s", rate, d.name), func(b *testing.B) {
				for b.Loop() {
					r := d.run(b, bench.Load{
						Rate: rate, Count: rate * int(load/time.Second), Delays: []bench.Delay{{Duration: delay}},
					})
					t.row(thousands(rate), d.name, millis(r.late.P50), millis(r.late.P99), millis(r.late.Max),
						millis(r.late.Min), thousands(int(r.rate)), thousands(r.Lost), thousands(r.Twice),
						r.cpu.String())
				}
			})
		}
	}
	t.print("BenchmarkLateness: lateness at each rate")
}

func (d delayer) run(b *testing.B, load bench.Load) result {
	b.Helper()
	ps := d.start(b)
	l := newLoad(b, ps[0].connect())
	cfg, subject := names.Arrivals(d.side)
	target := bench.StreamTarget{Stream: l.stream(cfg), Subject: subject}
	if d.side == bench.Scheduler {
		target.OtherMessages = load.Count
	}
	load.Side, load.Prefix, load.Size, load.Targets, load.Publishers = d.side, prefix, bodySize, 1, 1
	before := ps.cpu()
	r := result{rate: l.runSide(load).Rate}
	r.report(b, l.await(target, 0, load.Count, func() { r.cpu = ps.cpu().since(before, load.Count) }))
	if d.finished != nil {
		d.finished(l)
	}
	for _, p := range slices.Backward(ps) {
		p.kill()
	}
	return r
}
