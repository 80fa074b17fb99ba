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

	"delaybroker/test/natstest"
	"delaybroker/test/rivals/bench"
)

const (
	// healthyTurn is the field Turn in the payloads for the healthy target. It is 0 in the payloads for neighbours.
	healthyTurn   = 1
	healthyShare  = 4   // rate of messages for the healthy target, as a multiple of neighbourRate
	neighbourRate = 500 // messages per second for each neighbour
	loadTime      = 20 * time.Second
)

// A neighbour is a target beside the healthy target.
type neighbour struct {
	name    string
	subject string        // of the requests
	mode    string        // value of the header Delay-Deliver, or empty
	open    func(l *load) // creates the target
}

// healthyNeighbour is another healthy target, whose only effect is its load.
var healthyNeighbour = neighbour{name: "well", subject: "delay.1s.well.x", open: func(l *load) {
	l.stream(jetstream.StreamConfig{Name: "WELL", Subjects: []string{"well.>"}})
}}

// fullNeighbour is a full stream, which refuses all messages. The payload of its only message has no valid stamp, so
// load.numbers ignores this message.
var fullNeighbour = neighbour{name: "full", subject: "delay.1s.full.x", open: func(l *load) {
	l.stream(jetstream.StreamConfig{Name: "FULL", Subjects: []string{"full.>"}, Discard: jetstream.DiscardNew,
		MaxMsgs: 1})
	if _, err := l.js.Publish(context.Background(), "full.x", bytes.Repeat([]byte{0xff}, bench.MinSize)); err != nil {
		l.b.Fatalf("fill the stream FULL: %v", err)
	}
}}

// missingNeighbour is a target without a stream and without a subscriber.
var missingNeighbour = neighbour{name: "missing", subject: "delay.1s.missing.x", open: func(*load) {}}

// silentNeighbour is a subscriber that does not acknowledge its messages.
var silentNeighbour = neighbour{name: "silent", subject: "delay.1s.silent.x", mode: "stream", open: func(l *load) {
	sub, err := l.nc.Subscribe("silent.>", func(*nats.Msg) {})
	natstest.NoError(l.b, err)
	natstest.NoError(l.b, sub.SetPendingLimits(-1, -1))
}}

// BenchmarkIsolation measures the lateness of 2,000 messages a second for a healthy target: alone, and beside other
// targets with 500 messages a second each. A message has at most three attempts.
//
//	go test -run '^$' -bench Isolation -benchtime 1x ./test/rivals
//
// It takes five minutes. After each run, the benchmark searches the target's stream, the dead letters and the lanes for
// each accepted message. A message that is in none of these places is lost, and fails the benchmark. The healthy target
// is measured alone in the first run and in the last run. The difference between these runs is the noise of the
// machine. The ratios are relative to the larger p99 of the two runs. On a machine with other load, real-time priority
// for the command (chrt -r 1) reduces the noise.
func BenchmarkIsolation(b *testing.B) {
	t := table{head: []string{"beside", "msg/s", "p50 ms", "p99 ms", "max ms", "p99 ÷ alone", "lost", "others",
		"delivered", "dead", "retried", "waiting", "lost"}}
	type run struct {
		name       string
		neighbours []neighbour
		healthy    result
		others     outcomes
	}
	runs := []run{
		{name: "alone"},
		{neighbours: []neighbour{healthyNeighbour}},
		{neighbours: []neighbour{fullNeighbour}},
		{neighbours: []neighbour{missingNeighbour}},
		{neighbours: []neighbour{silentNeighbour}},
		{neighbours: []neighbour{healthyNeighbour, healthyNeighbour, healthyNeighbour}},
		{neighbours: []neighbour{fullNeighbour, missingNeighbour, silentNeighbour}},
		{name: "alone again"},
	}
	for i := range runs {
		r := &runs[i]
		if r.name == "" {
			r.name = namesOf(r.neighbours)
		}
		b.Run(strings.ReplaceAll(r.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				r.healthy, r.others = measureIsolation(b, r.neighbours)
			}
		})
	}
	alone := max(runs[0].healthy.late.P99, runs[len(runs)-1].healthy.late.P99)
	for _, r := range runs {
		if r.healthy.rate == 0 {
			continue // the flag -bench excludes the run
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
	t.print("BenchmarkIsolation: lateness of a healthy target, and the outcomes of the messages for the other targets")
}

func namesOf(all []neighbour) string {
	var words []string
	for _, n := range all {
		words = append(words, n.name)
	}
	return strings.Join(words, "+")
}

func measureIsolation(b *testing.B, neighbours []neighbour) (healthy result, others outcomes) {
	b.Helper()
	ps := startServerAndBroker(b, "DELAY_ATTEMPTS=3")
	l := newLoad(b, ps[0].connect())
	cfg, subject := names.Arrivals(bench.Broker)
	target := bench.StreamTarget{Stream: l.stream(cfg), Subject: subject}
	for i, n := range neighbours {
		if i == 0 || n.name != neighbours[i-1].name {
			n.open(l)
		}
	}
	cycle := healthyShare + len(neighbours) // the number of messages after which the targets repeat
	rate := neighbourRate * cycle
	count := rate * int(loadTime/time.Second)
	isHealthy := func(n int) bool { return n%cycle < healthyShare }
	before := ps.cpu()
	loaded := l.run(rate, count, func(n int) *nats.Msg {
		if isHealthy(n) { // payloads for the healthy target have consecutive numbers
			m, number := delayMessage(time.Second), n/cycle*healthyShare+n%cycle
			m.Data = bench.Stamp{Turn: healthyTurn, Number: uint32(number), Due: time.Now()}.Payload(bodySize)
			return m
		}
		to := neighbours[n%cycle-healthyShare]
		m := &nats.Msg{Subject: to.subject}
		if to.mode != "" {
			m.Header = nats.Header{"Delay-Deliver": {to.mode}}
		}
		return m
	})
	healthy.rate = loaded.Rate
	healthy.report(b, l.await(target, healthyTurn, count/cycle*healthyShare, func() {
		healthy.cpu = ps.cpu().since(before, count)
	}))
	time.Sleep(7 * time.Second) // longer than the two retry delays together, 1 s and 5 s
	ps[1].kill()
	others = l.outcomes(count, isHealthy)
	ps[0].kill()
	return healthy, others
}

// outcomes has the numbers of messages for the neighbours by outcome: stored by the target, among the dead letters, in
// a retry lane, in another lane, or lost.
type outcomes struct{ all, delivered, dead, retried, waiting, lost int }

// outcomes searches for the messages with the numbers below count, except those for which skip returns true. The caller
// has stopped the broker, so no message changes its stream during the search.
func (l *load) outcomes(count int, skip func(n int) bool) outcomes {
	l.b.Helper()
	found := make(map[uint32]bool, count)
	var o outcomes
	search := func(stream string, outcome *int) {
		for _, n := range l.numbers(stream) {
			if n < uint32(count) && !skip(int(n)) && !found[n] {
				found[n] = true
				*outcome++
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
	// A message may be in two streams, because a lane keeps a message for a short time after the broker has moved it on.
	// It counts only in the stream that it reached last, which is searched first.
	for _, place := range []struct {
		prefix  string // of the streams' names
		outcome *int
	}{{"WELL", &o.delivered}, {"FULL", &o.delivered}, {"DELAY_DEAD", &o.dead}, {"DELAY_RETRY_", &o.retried},
		{"DELAY_", &o.waiting}} {
		for _, name := range streams {
			if strings.HasPrefix(name, place.prefix) {
				search(name, place.outcome)
			}
		}
	}
	for n := range count {
		if skip(n) {
			continue
		}
		o.all++
		if !found[uint32(n)] {
			o.lost++
		}
	}
	if o.lost > 0 {
		l.b.Errorf("%d of %d messages for the neighbours are in no stream", o.lost, o.all)
	}
	return o
}

// numbers returns the numbers of the messages in a stream that are for the neighbours.
func (l *load) numbers(stream string) []uint32 {
	l.b.Helper()
	s, err := l.js.Stream(context.Background(), stream)
	if err != nil {
		l.b.Fatalf("open the stream %s: %v", stream, err)
	}
	var all []uint32
	natstest.NoError(l.b, bench.ReadStream(context.Background(), s, ">", func(m jetstream.Msg, _ time.Time) {
		if stamp, ok := bench.ReadStamp(m.Data()); ok && stamp.Turn == 0 {
			all = append(all, stamp.Number)
		}
	}))
	return all
}
