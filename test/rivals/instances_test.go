package rivals_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
	"delaybroker/broker/lease"
)

// BenchmarkInstances measures one, two and three brokers that share the lanes, on one server, and on a cluster of three
// servers with three replicas. It measures the lateness at a rate that one broker can deliver, and the arrivals per
// second of 30,000 messages with the same due time.
//
//	go test -run '^$' -bench Instances -benchtime 1x ./test/rivals
//
// It takes three and a half minutes. A lane has one owner, so the load uses several lanes. Half of the messages have
// the delays 1s, 3s, 5s and 7s, which are levels. The other messages have the delays 2s, 4s, 6s and 8s, and pass the
// intake. The messages with the same due time are published to the four levels, with the due time in a header.
// Shortly before the due time, a quarter of them waits in the level 3s, a half in 7s, and a quarter in 10s. The brokers
// join one after the other, on the same servers. A measurement begins when the lanes are divided equally. CPU is the
// CPU time per message: the sum of all servers, and that of each broker.
func BenchmarkInstances(b *testing.B) {
	const maxBrokers, load, count = 3, 6 * time.Second, 30_000
	steady := table{head: []string{"servers", "brokers", "lanes", "msg/s", "p50 ms", "p99 ms", "max ms", "min ms",
		"achieved/s", "lost", "twice", "CPU µs/msg"}}
	drain := table{head: []string{"servers", "brokers", "first ms", "p50 ms", "last ms", "msg/s", "lost", "twice",
		"CPU µs/msg"}}
	for _, servers := range []int{1, 3} {
		rate := 5_000
		if servers > 1 {
			rate = 2_000
		}
		b.Run("servers="+strconv.Itoa(servers), func(b *testing.B) {
			f := startFleet(b, servers)
			target, _ := names.Arrivals(bench.Broker)
			target.Replicas = servers
			newLoad(b, f.nc).stream(target)
			for n := 1; n <= maxBrokers; n++ {
				b.Run("brokers="+strconv.Itoa(n), func(b *testing.B) {
					for b.Loop() {
						lanes := f.grow(b, n)
						r := f.runSteady(b, rate, rate*int(load/time.Second))
						steady.row(strconv.Itoa(servers), strconv.Itoa(n), lanes, thousands(rate), millis(r.late.P50),
							millis(r.late.P99), millis(r.late.Max), millis(r.late.Min),
							thousands(int(r.rate)), thousands(r.Lost), thousands(r.Twice), r.cpu.String())
						r = f.runBurst(b, count)
						drain.row(strconv.Itoa(servers), strconv.Itoa(n), millis(r.late.Min), millis(r.late.P50),
							millis(r.late.Max), thousands(int(count/(r.late.Max/1000))), thousands(r.Lost),
							thousands(r.Twice), r.cpu.String())
					}
				})
			}
			f.end()
		})
	}
	steady.print("BenchmarkInstances: lateness at a steady rate")
	drain.print("BenchmarkInstances: lateness of 30,000 messages due at one instant")
}

// A fleet is several brokers that share the lanes on the same servers.
type fleet struct {
	b       *testing.B
	servers processes
	brokers processes
	nc      *nats.Conn
}

// startFleet starts the servers of a fleet without brokers.
func startFleet(b *testing.B, servers int) *fleet {
	b.Helper()
	f := &fleet{b: b, servers: startServers(b, servers)}
	f.nc = f.servers[0].connect()
	return f
}

// grow starts brokers until n brokers run, and waits until the lanes are divided equally. It returns the number of
// lanes of each broker, as in "12+12+12".
func (f *fleet) grow(b *testing.B, n int, env ...string) string {
	b.Helper()
	for len(f.brokers) < n {
		f.brokers = append(f.brokers, startBroker(f.b,
			append(env, "NATS_URL="+f.servers.urls(), "DELAY_PROVISION=create")...))
	}
	js, err := jetstream.New(f.nc)
	if err != nil {
		b.Fatal(err)
	}
	const poll, timeout = 200 * time.Millisecond, time.Minute
	for deadline := time.Now().Add(timeout); ; time.Sleep(poll) {
		lanes, err := shares(js, n)
		if err == nil {
			return lanes
		}
		if time.Now().After(deadline) {
			b.Fatalf("the lanes are not divided equally after %s: %v", timeout, err)
		}
	}
}

// shares returns the number of lanes of each broker, in the order in which the brokers joined. It returns an error if a
// broker is missing, if a lane has no owner, or if the numbers differ by more than one.
func shares(js jetstream.JetStream, n int) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, "DELAY_OWNERS")
	if err != nil {
		return "", err
	}
	m, err := s.GetLastMsgForSubject(ctx, "delaysys.owners.table")
	if err != nil {
		return "", err
	}
	t, err := lease.ParseTable(m.Data)
	if err != nil {
		return "", err
	}
	if len(t.Instances) != n {
		return "", fmt.Errorf("%d of %d brokers have joined", len(t.Instances), n)
	}
	owned := make(map[string]int)
	for lane, claim := range t.Lanes {
		if claim.Instance == "" {
			return "", fmt.Errorf("%s has no owner", lane)
		}
		owned[claim.Instance]++
	}
	var counts []int
	var words []string
	for _, id := range slices.SortedFunc(maps.Keys(t.Instances), func(a, b string) int {
		return cmp.Compare(t.Instances[a].Joined, t.Instances[b].Joined)
	}) {
		counts = append(counts, owned[id])
		words = append(words, strconv.Itoa(owned[id]))
	}
	if slices.Max(counts)-slices.Min(counts) > 1 {
		return "", errors.New("the brokers own " + strings.Join(words, "+") + " lanes")
	}
	return strings.Join(words, "+"), nil
}

// runSteady publishes messages with delays of 1 to 8 seconds at a rate, and measures their lateness.
func (f *fleet) runSteady(b *testing.B, rate, count int) result {
	b.Helper()
	return f.run(b, rate, count, func(n int) *nats.Msg {
		return delayMessage(time.Duration(1+n%8) * time.Second)
	})
}

// runBurst publishes messages with the same due time, and measures their lateness.
func (f *fleet) runBurst(b *testing.B, count int) result {
	b.Helper()
	const ahead, longest = 15 * time.Second, 7 * time.Second
	var due time.Time
	var until string
	r := f.run(b, 0, count, func(n int) *nats.Msg {
		if n == 0 {
			due = time.Now().Add(ahead).Truncate(time.Millisecond)
			until = strconv.FormatInt(due.UnixMilli(), 10)
		}
		m := delayMessage(time.Duration(1+n%4*2) * time.Second) // the levels 1s, 3s, 5s and 7s
		m.Header = nats.Header{"Delay-Until": {until}}
		return m
	})
	if r.published.After(due.Add(-longest)) {
		b.Error("the load took too long: some messages leave their first level after the due time")
	}
	return r
}

// run publishes messages and measures their arrivals. A lost or early message fails the benchmark.
func (f *fleet) run(b *testing.B, rate, count int, next message) (r result) {
	b.Helper()
	l := newLoad(b, f.nc)
	cfg, subject := names.Arrivals(bench.Broker)
	s, err := l.js.Stream(context.Background(), cfg.Name)
	if err == nil {
		err = s.Purge(context.Background())
	}
	if err != nil {
		b.Fatalf("purge the target's stream: %v", err)
	}
	target := bench.StreamTarget{Stream: s, Subject: subject, OtherMessages: int(s.CachedInfo().State.LastSeq)}
	servers, brokers := f.servers.cpu(), f.brokers.cpu()
	loaded := l.run(rate, count, next)
	r.rate, r.published = loaded.Rate, loaded.LastAnswer
	r.report(b, l.await(target, 0, count, func() {
		r.cpu = append(times{f.servers.cpu().since(servers, count).sum()}, f.brokers.cpu().since(brokers, count)...)
	}))
	return r
}

// delayMessage returns a message for the target with a plain duration as its delay.
func delayMessage(delay time.Duration) *nats.Msg {
	return &nats.Msg{Subject: prefix + "." + delay.String() + "." + names.Target(0)}
}

// stop stops all brokers with SIGTERM.
func (f *fleet) stop() {
	for _, p := range f.brokers {
		p.broker.Terminate()
	}
	f.brokers = nil
}

func (f *fleet) end() {
	f.stop()
	f.nc.Close()
	for _, p := range f.servers {
		p.kill()
	}
}
