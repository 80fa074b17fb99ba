package rivals_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A delayer is what makes messages wait: the broker, or its rival.
type delayer struct {
	name string
	// start starts the processes. Messages are published to the first.
	start func(b *testing.B) processes
	// stream is the target: messages arrive there on subject.
	stream  jetstream.StreamConfig
	subject string
	// wait makes the message for a delay, at the one for a point in time.
	wait func(n int, delay time.Duration) *nats.Msg
	at   func(n int, due time.Time) *nats.Msg
	// due is the time at which an arrived message was due.
	due func(nats.Header) time.Time
}

var broker = delayer{
	name:    "broker",
	start:   startBoth,
	stream:  jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}},
	subject: "orders.x",
	wait: func(_ int, delay time.Duration) *nats.Msg {
		return &nats.Msg{Subject: "delay." + delay.String() + ".orders.x"}
	},
	at: func(_ int, due time.Time) *nats.Msg {
		return &nats.Msg{Subject: "delayat." + strconv.FormatInt(due.UnixMilli(), 10) + ".orders.x"}
	},
	due: func(h nats.Header) time.Time { return moment(h.Get("Delay-Due")) },
}

// embedded is the broker with a nats-server in the same process.
var embedded = func() delayer {
	d := broker
	d.name = "embedded"
	d.start = func(b *testing.B) processes {
		return processes{startBroker(b, "DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR="+b.TempDir())}
	}
	return d
}()

// scheduler is the scheduling that nats-server has itself (ADR-51). It needs one subject for each schedule, and the
// target in the same stream. A header of ours has the time asked for, because the server removes its own header.
var scheduler = delayer{
	name:  "scheduler",
	start: func(b *testing.B) processes { return processes{startServer(b)} },
	stream: jetstream.StreamConfig{Name: "SCHEDULES", Subjects: []string{"schedules.*", "orders.>"},
		AllowMsgSchedules: true},
	subject: "orders.x",
	wait:    func(n int, delay time.Duration) *nats.Msg { return schedule(n, time.Now().Add(delay)) },
	at:      schedule,
	due:     func(h nats.Header) time.Time { return moment(h.Get("Asked")) },
}

func schedule(n int, due time.Time) *nats.Msg {
	asked := due.UTC().Format(time.RFC3339Nano)
	return &nats.Msg{Subject: "schedules." + strconv.Itoa(n), Header: nats.Header{
		"Nats-Schedule": {"@at " + asked}, "Nats-Schedule-Target": {"orders.x"}, "Asked": {asked},
	}}
}

func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s) // the zero time shows as centuries of lateness
	return t
}

// startBoth runs a server, and a broker beside it.
func startBoth(b *testing.B) processes {
	s := startServer(b)
	return processes{s, startBroker(b, "NATS_URL="+s.url, "DELAY_PROVISION=create")}
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
		for _, d := range []delayer{broker, embedded, scheduler} {
			b.Run(fmt.Sprintf("rate=%d/%s", rate, d.name), func(b *testing.B) {
				for b.Loop() {
					r := d.run(b, rate, rate*int(load/time.Second), func(n int) *nats.Msg { return d.wait(n, delay) })
					t.row(thousands(rate), d.name, millis(r.p50), millis(r.p99), millis(r.max), millis(r.min),
						thousands(int(r.rate)), thousands(r.lost), thousands(r.twice), r.cpu.String())
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
	for _, d := range []delayer{broker, embedded, scheduler} {
		b.Run(d.name, func(b *testing.B) {
			for b.Loop() {
				var due time.Time
				r := d.run(b, 0, count, func(n int) *nats.Msg {
					if n == 0 {
						due = time.Now().Add(ahead).Truncate(time.Millisecond)
					}
					return d.at(n, due)
				})
				if r.published.After(due) {
					b.Error("it was due before it was published")
				}
				t.row(d.name, millis(r.min), millis(r.p50), millis(r.max), thousands(r.lost), thousands(r.twice),
					r.cpu.String())
			}
		})
	}
	t.print("BenchmarkInstant: 100,000 messages due at one instant, stored at the target after due")
}

// result is the result of one run. The durations are lateness.
type result struct {
	p50, p99, max, min time.Duration
	lost, twice        int
	rate               float64   // achieved by the publisher
	published          time.Time // when the last acknowledgement was there
	cpu                times     // per message
}

// run starts the delayer, publishes to it, and measures what arrives. Lost or early messages fail the benchmark.
func (d delayer) run(b *testing.B, rate, count int, next message) result {
	b.Helper()
	ps := d.start(b)
	l := newLoad(b, ps[0].connect())
	l.stream(d.stream)
	before := ps.cpu()
	var r result
	r.rate = l.run(rate, count, next)
	r.published = time.Now()
	there := l.await(d.stream.Name, d.subject, count)
	r.cpu = ps.cpu().since(before, count)
	r.judge(b, l.arrivals(d.stream.Name, d.subject, there, d.due), count)
	for _, p := range slices.Backward(ps) {
		p.kill()
	}
	return r
}

func (r *result) judge(b *testing.B, all []arrival, count int) {
	b.Helper()
	if len(all) == 0 {
		b.Fatal("nothing arrived")
	}
	late := make([]time.Duration, 0, len(all))
	seen := make(map[uint64]bool, count)
	for _, a := range all {
		late = append(late, a.stored.Sub(a.due))
		seen[a.number] = true
	}
	slices.Sort(late)
	r.p50, r.p99, r.max, r.min = late[len(late)/2], late[len(late)*99/100], late[len(late)-1], late[0]
	r.lost, r.twice = count-len(seen), len(all)-len(seen)
	if r.min < 0 {
		b.Errorf("one came %s early", -r.min)
	}
	if r.lost > 0 {
		b.Errorf("%d of %d are lost", r.lost, count)
	}
	b.ReportMetric(0, "ns/op") // hides it: it would be the time of the whole run
	b.ReportMetric(r.rate, "msg/s")
	b.ReportMetric(float64(r.cpu.sum())/float64(time.Microsecond), "cpu-µs/msg")
	for unit, d := range map[string]time.Duration{"p50-ms": r.p50, "p99-ms": r.p99, "max-ms": r.max} {
		b.ReportMetric(float64(d)/float64(time.Millisecond), unit)
	}
}
