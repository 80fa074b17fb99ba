package rivals_test

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
)

const (
	healthyTurn  = 1                // in the payloads of the healthy target
	healthyShare = 4                // messages for the healthy target to one for each of its neighbours
	besideRate   = 500              // msg/s to each neighbour
	besideLoad   = 20 * time.Second // long enough that what is silent fails its first attempt meanwhile
)

// neighbour is a target beside the healthy one.
type neighbour struct {
	name    string
	subject string // of a request for it
	mode    string // Delay-Deliver; may be empty
	open    func(l *load)
}

// well is a second healthy target: its only effect is the additional load.
var well = neighbour{name: "well", subject: "delay.1s.well.x", open: func(l *load) {
	l.stream(jetstream.StreamConfig{Name: "WELL", Subjects: []string{"well.>"}})
}}

// full is a stream that refuses everything. The message that fills it has a payload that is no other one.
var full = neighbour{name: "full", subject: "delay.1s.full.x", open: func(l *load) {
	l.stream(jetstream.StreamConfig{Name: "FULL", Subjects: []string{"full.>"}, Discard: jetstream.DiscardNew,
		MaxMsgs: 1})
	if _, err := l.js.Publish(context.Background(), "full.x", bytes.Repeat([]byte{0xff}, bench.MinSize)); err != nil {
		l.b.Fatalf("fill: %v", err)
	}
}}

// missing has neither a stream nor a subscriber.
var missing = neighbour{name: "missing", subject: "delay.1s.missing.x", open: func(*load) {}}

// silent is a subscriber that does not acknowledge.
var silent = neighbour{name: "silent", subject: "delay.1s.silent.x", mode: "stream", open: func(l *load) {
	sub, err := l.nc.Subscribe("silent.>", func(*nats.Msg) {})
	if err != nil {
		l.b.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		l.b.Fatal(err)
	}
}}

// BenchmarkIsolation measures how late a healthy target at 2,000 messages a second is: alone, and beside other targets
// at 500 a second each. A message has three attempts.
//
//	go test -run '^$' -bench Isolation -benchtime 1x ./test/rivals
//
// It takes five minutes. Afterwards every accepted message is searched for in its target's stream, among the dead
// letters, and in the lanes. A message that is nowhere is lost, and fails the benchmark. The run "alone" is measured
// first and last, and ratios are to the worse p99 of the two: their difference is the noise of the machine. On a
// machine with other users, real-time priority (chrt -r 1 in front of the command) reduces the noise.
func BenchmarkIsolation(b *testing.B) {
	t := table{head: []string{"beside", "msg/s", "p50 ms", "p99 ms", "max ms", "p99 ÷ alone", "lost", "others",
		"delivered", "dead", "retried", "waiting", "lost"}}
	type run struct {
		name    string
		beside  []neighbour
		healthy result
		others  fates
	}
	runs := []run{
		{name: "alone"}, {beside: []neighbour{well}}, {beside: []neighbour{full}}, {beside: []neighbour{missing}},
		{beside: []neighbour{silent}},
		{beside: []neighbour{well, well, well}}, {beside: []neighbour{full, missing, silent}}, {name: "alone again"},
	}
	for i := range runs {
		r := &runs[i]
		if r.name == "" {
			r.name = namesOf(r.beside)
		}
		b.Run(strings.ReplaceAll(r.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				r.healthy, r.others = beside(b, r.beside)
			}
		})
	}
	alone := max(runs[0].healthy.late.P99, runs[len(runs)-1].healthy.late.P99)
	for _, r := range runs {
		if r.healthy.rate == 0 {
			continue // not asked for
		}
		ratio := "-"
		if alone > 0 {
			ratio = strconv.FormatFloat(r.healthy.late.P99/alone, 'f', 2, 64)
		}
		t.row(r.name, thousands(int(r.healthy.rate)), millis(r.healthy.late.P50), millis(r.healthy.late.P99),
			millis(r.healthy.late.Max), ratio,
			thousands(r.healthy.Lost), thousands(r.others.all), thousands(r.others.delivered), thousands(r.others.dead),
			thousands(r.others.retried), thousands(r.others.waiting), thousands(r.others.lost))
	}
	t.print("BenchmarkIsolation: a healthy target's messages stored after due, and what became of the others")
}

func namesOf(all []neighbour) string {
	var words []string
	for _, n := range all {
		words = append(words, n.name)
	}
	return strings.Join(words, "+")
}

// beside runs the healthy target beside these neighbours.
func beside(b *testing.B, neighbours []neighbour) (healthy result, others fates) {
	b.Helper()
	ps := startBoth(b, "DELAY_ATTEMPTS=3")
	l := newLoad(b, ps[0].connect())
	cfg, subject := names.Arrivals(bench.Broker)
	target := bench.Stored{Stream: l.stream(cfg), Subject: subject}
	for i, n := range neighbours {
		if i == 0 || n.name != neighbours[i-1].name {
			n.open(l)
		}
	}
	turn := healthyShare + len(neighbours)
	rate := besideRate * turn
	count := rate * int(besideLoad/time.Second)
	isHealthy := func(n int) bool { return n%turn < healthyShare }
	before := ps.cpu()
	loaded := l.run(rate, count, func(n int) *nats.Msg {
		if isHealthy(n) { // these have numbers of their own
			m, number := delayed(time.Second), n/turn*healthyShare+n%turn
			m.Data = bench.Stamp{Turn: healthyTurn, Number: uint32(number), Due: time.Now()}.Payload(bodySize)
			return m
		}
		to := neighbours[n%turn-healthyShare]
		m := &nats.Msg{Subject: to.subject}
		if to.mode != "" {
			m.Header = nats.Header{"Delay-Deliver": {to.mode}}
		}
		return m
	})
	healthy.rate = loaded.Rate
	healthy.judge(b, l.await(target, healthyTurn, count/turn*healthyShare, func() {
		healthy.cpu = ps.cpu().since(before, count)
	}))
	time.Sleep(7 * time.Second) // what was refused has had both its waits, of 1s and 5s
	ps[1].kill()
	others = l.fates(count, isHealthy)
	ps[0].kill()
	return healthy, others
}

// fates counts where the messages for the other targets ended: stored by the target, among the dead letters, in a retry
// lane, or still in their first lane.
type fates struct{ all, delivered, dead, retried, waiting, lost int }

// fates searches for every message of count that skip does not exclude. The broker is stopped, so nothing moves
// meanwhile.
func (l *load) fates(count int, skip func(n int) bool) fates {
	l.b.Helper()
	found := make(map[uint32]bool, count)
	var f fates
	note := func(stream string, fate *int) {
		for _, n := range l.numbers(stream) {
			if n < uint32(count) && !skip(int(n)) && !found[n] {
				found[n] = true
				*fate++
			}
		}
	}
	var streams []string
	names := l.js.StreamNames(context.Background())
	for name := range names.Name() {
		streams = append(streams, name)
	}
	if err := names.Err(); err != nil {
		l.b.Fatalf("list the streams: %v", err)
	}
	// A message that has moved on may still be in the lane it left, if that is not committed. So the last place comes
	// first.
	for _, place := range []struct {
		stream string // or how its name begins
		fate   *int
	}{{"WELL", &f.delivered}, {"FULL", &f.delivered}, {"DELAY_DEAD", &f.dead}, {"DELAY_RETRY_", &f.retried},
		{"DELAY_", &f.waiting}} {
		for _, name := range streams {
			if strings.HasPrefix(name, place.stream) {
				note(name, place.fate)
			}
		}
	}
	for n := range count {
		if skip(n) {
			continue
		}
		f.all++
		if !found[uint32(n)] {
			f.lost++
		}
	}
	if f.lost > 0 {
		l.b.Errorf("%d of %d messages for others are nowhere", f.lost, f.all)
	}
	return f
}

// numbers returns the numbers of all messages in a stream that are for the neighbours.
func (l *load) numbers(stream string) []uint32 {
	l.b.Helper()
	s, err := l.js.Stream(context.Background(), stream)
	if err != nil {
		l.b.Fatalf("look at %s: %v", stream, err)
	}
	var all []uint32
	if err := bench.ReadStream(context.Background(), s, ">", func(m jetstream.Msg, _ time.Time) {
		if stamp, ok := bench.ReadStamp(m.Data()); ok && stamp.Turn == 0 {
			all = append(all, stamp.Number)
		}
	}); err != nil {
		l.b.Fatal(err)
	}
	return all
}
