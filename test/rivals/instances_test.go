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

// BenchmarkInstances measures one, two and three brokers that share the lanes, on one server and on a cluster of three
// with three replicas: how late messages are at a rate that one broker can manage, and how many arrive per second when
// 30,000 are due at one instant.
//
//	go test -run '^$' -bench Instances -benchtime 1x ./test/rivals
//
// It takes three and a half minutes. A lane has one owner, so the load is spread over lanes. Half of it uses the levels
// 1s, 3s, 5s and 7s; the other half uses durations between them, which pass the intake. The messages due at one instant
// are published to these four levels with their time in a header. Shortly before that instant they wait in three
// levels: a quarter in 3s, a half in 7s, a quarter in 10s. The brokers divide the lanes as they always do. Streams and
// servers stay while brokers join; each row is measured after the lanes are divided. CPU is the time for one message,
// of all servers and of each broker.
func BenchmarkInstances(b *testing.B) {
	const most, load, count = 3, 6 * time.Second, 30_000
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
			for n := 1; n <= most; n++ {
				b.Run("brokers="+strconv.Itoa(n), func(b *testing.B) {
					for b.Loop() {
						lanes := f.grow(b, n)
						r := f.steady(b, rate, rate*int(load/time.Second))
						steady.row(strconv.Itoa(servers), strconv.Itoa(n), lanes, thousands(rate), millis(r.late.P50),
							millis(r.late.P99), millis(r.late.Max), millis(r.late.Min),
							thousands(int(r.rate)), thousands(r.Lost), thousands(r.Twice), r.cpu.String())
						r = f.drain(b, count)
						drain.row(strconv.Itoa(servers), strconv.Itoa(n), millis(r.late.Min), millis(r.late.P50),
							millis(r.late.Max), thousands(int(count/(r.late.Max/1000))), thousands(r.Lost),
							thousands(r.Twice), r.cpu.String())
					}
				})
			}
			f.end()
		})
	}
	steady.print("BenchmarkInstances: stored at the target after due")
	drain.print("BenchmarkInstances: 30,000 messages due at one instant, stored at the target after due")
}

// fleet is several brokers that share the lanes on one or more servers.
type fleet struct {
	b       *testing.B
	servers processes
	brokers processes
	nc      *nats.Conn
}

// startFleet starts the servers, without a broker.
func startFleet(b *testing.B, servers int) *fleet {
	b.Helper()
	f := &fleet{b: b, servers: startServers(b, servers)}
	f.nc = f.servers[0].connect()
	return f
}

// grow starts brokers until there are n. When the lanes are divided, it returns how many each owns, as "12+12+12".
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
			b.Fatalf("the lanes are not shared out after %s: %v", timeout, err)
		}
	}
}

// shares returns how many lanes each of n brokers owns, in the order in which they joined. It fails unless all lanes
// are owned, in equal numbers.
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
		return "", fmt.Errorf("%d brokers know of each other", len(t.Instances))
	}
	owned := make(map[string]int)
	for lane, claim := range t.Lanes {
		if claim.Instance == "" {
			return "", fmt.Errorf("nobody owns %s", lane)
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
		return "", errors.New("they own " + strings.Join(words, "+"))
	}
	return strings.Join(words, "+"), nil
}

// steady publishes at a rate to levels and durations of up to 8 s, and measures how late all messages arrive.
func (f *fleet) steady(b *testing.B, rate, count int) result {
	b.Helper()
	return f.run(b, rate, count, func(n int) *nats.Msg {
		return delayed(time.Duration(1+n%8) * time.Second)
	})
}

// drain publishes messages that are due at one instant, and measures how late they arrive.
func (f *fleet) drain(b *testing.B, count int) result {
	b.Helper()
	const ahead, longest = 15 * time.Second, 7 * time.Second
	var due time.Time
	var until string
	r := f.run(b, 0, count, func(n int) *nats.Msg {
		if n == 0 {
			due = time.Now().Add(ahead).Truncate(time.Millisecond)
			until = strconv.FormatInt(due.UnixMilli(), 10)
		}
		m := delayed(time.Duration(1+n%4*2) * time.Second) // 1s, 3s, 5s, 7s: levels
		m.Header = nats.Header{"Delay-Until": {until}}
		return m
	})
	if r.published.After(due.Add(-longest)) {
		b.Error("it took too long to publish: not all could pass their level in time")
	}
	return r
}

// run publishes, and measures what arrives. Lost or early messages fail the benchmark.
func (f *fleet) run(b *testing.B, rate, count int, next message) (r result) {
	b.Helper()
	l := newLoad(b, f.nc)
	cfg, subject := names.Arrivals(bench.Broker)
	s, err := l.js.Stream(context.Background(), cfg.Name)
	if err == nil {
		err = s.Purge(context.Background())
	}
	if err != nil {
		b.Fatalf("empty the target's stream: %v", err)
	}
	target := bench.Stored{Stream: s, Subject: subject, Others: int(s.CachedInfo().State.LastSeq)}
	servers, brokers := f.servers.cpu(), f.brokers.cpu()
	loaded := l.run(rate, count, next)
	r.rate, r.published = loaded.Rate, loaded.Last
	r.judge(b, l.await(target, 0, count, func() {
		r.cpu = append(times{f.servers.cpu().since(servers, count).sum()}, f.brokers.cpu().since(brokers, count)...)
	}))
	return r
}

// delayed is a message for the target, published to the level or plain duration.
func delayed(delay time.Duration) *nats.Msg {
	return &nats.Msg{Subject: prefix + "." + delay.String() + "." + names.Target(0)}
}

// stop ends all brokers by SIGTERM.
func (f *fleet) stop() {
	for _, p := range f.brokers {
		p.broker.Terminate()
	}
	f.brokers = nil
}

// end ends the brokers and the servers.
func (f *fleet) end() {
	f.stop()
	f.nc.Close()
	for _, p := range f.servers {
		p.kill()
	}
}
