package rivals_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"delaybroker/broker/bench"
)

// A delayer is what makes messages wait: a side of "delaybroker bench" in processes of its own, on a server of its own.
type delayer struct {
	name string
	side bench.Side
	// start starts the processes. Messages are published to the first.
	start func(b *testing.B) processes
	over  func(l *load) // called when all has arrived, before the processes end; nil for nothing
}

// embedded is the broker with a nats-server in the same process, which "delaybroker bench" does not have.
var delayers = []delayer{
	{name: "broker", side: bench.Broker, start: func(b *testing.B) processes { return startBoth(b) }},
	{name: "embedded", side: bench.Broker, start: func(b *testing.B) processes {
		return processes{startBroker(b, "DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR="+b.TempDir())}
	}},
	{name: "scheduler", side: bench.Scheduler, start: func(b *testing.B) processes { return processes{startServer(b)} }},
}

// startBoth runs a server, and a broker beside it with these settings.
func startBoth(b *testing.B, env ...string) processes {
	s := startServer(b)
	return processes{s, startBroker(b, append(env, "NATS_URL="+s.url, "DELAY_PROVISION=create")...)}
}

// BenchmarkLateness measures the time between a message's due time and its storage in the target's stream: messages of
// 256 bytes with a delay of one second, at rising rates, for four seconds each.
//
//	go test -run '^$' -bench Lateness -benchtime 1x ./test/rivals
//
// It takes two minutes. Server, broker and publisher are separate processes, connected over TCP loopback. The rivals
// take turns at each rate, so compare results of one run, by their ratio. A message of the broker is due one second
// after its level stored it, a message of the scheduler one second after it was published. CPU is the time of the
// server and of the broker, if that is another process, from the first publish until the last arrival.
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
					}, 0)
					t.row(thousands(rate), d.name, millis(r.late.P50), millis(r.late.P99), millis(r.late.Max),
						millis(r.late.Min), thousands(int(r.rate)), thousands(r.Lost), thousands(r.Twice),
						r.cpu.String())
				}
			})
		}
	}
	t.print("BenchmarkLateness: stored at the target after due")
}

// BenchmarkInstant measures how long it takes to deliver 100,000 messages that are due at one instant, ten seconds
// after the first was published.
//
//	go test -run '^$' -bench Instant -benchtime 1x ./test/rivals
//
// It takes three quarters of a minute.
func BenchmarkInstant(b *testing.B) {
	const count, ahead = 100_000, 10 * time.Second
	t := table{head: []string{"rival", "first ms", "p50 ms", "last ms", "lost", "twice", "CPU µs/msg"}}
	for _, d := range delayers {
		b.Run(d.name, func(b *testing.B) {
			for b.Loop() {
				r := d.run(b, bench.Load{Count: count, Delays: []bench.Delay{{Duration: ahead}}}, ahead)
				t.row(d.name, millis(r.late.Min), millis(r.late.P50), millis(r.late.Max), thousands(r.Lost),
					thousands(r.Twice), r.cpu.String())
			}
		})
	}
	t.print("BenchmarkInstant: 100,000 messages due at one instant, stored at the target after due")
}

// run starts the delayer, publishes to it, and measures what arrives. Unless ahead is zero, all messages are due at one
// instant, so long after the delayer has started.
func (d delayer) run(b *testing.B, order bench.Load, ahead time.Duration) result {
	b.Helper()
	ps := d.start(b)
	l := newLoad(b, ps[0].connect())
	cfg, subject := names.Arrivals(d.side)
	target := bench.Stored{Stream: l.stream(cfg), Subject: subject}
	if d.side == bench.Scheduler {
		target.Others = order.Count
	}
	order.Side, order.Prefix, order.Size, order.Targets, order.Publishers = d.side, prefix, bodySize, 1, 1
	if ahead > 0 {
		order.Due = time.Now().Add(ahead).Truncate(time.Millisecond)
	}
	before := ps.cpu()
	var r result
	loaded := l.order(order)
	if !order.Due.IsZero() && loaded.Last.After(order.Due) {
		b.Error("it was due before it was published")
	}
	r.rate = loaded.Rate
	r.judge(b, l.await(target, 0, order.Count, func() { r.cpu = ps.cpu().since(before, order.Count) }))
	if d.over != nil {
		d.over(l)
	}
	for _, p := range slices.Backward(ps) {
		p.kill()
	}
	return r
}
