package rivals_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/bench"
	"delaybroker/broker/jsapi"
	wire "delaybroker/broker/message"
)

var (
	timersKept = flag.Int("timers", 1_000_000, "how many named timers BenchmarkTimers keeps pending")
	timersSide = flag.String("timers.side", "both", "whose timers BenchmarkTimers measures: broker, server or both")
)

// timerTries is how many timers each verb is measured with, warm and cold: of the timers, one in twenty at most.
func timerTries() int { return min(1000, *timersKept/20) }

// A keeper keeps what is due tomorrow, and lets it be changed until then.
type keeper struct {
	name   string
	side   string   // of -timers.side
	env    []string // of its broker; nil without one
	home   string
	config jetstream.StreamConfig // of the stream in which they arrive
	root   string                 // of the subjects on which they stand, with the final dot
	fired  string                 // where they arrive
	set    func(n int, in time.Duration) nats.Header
	cancel func(ctx context.Context, k *kept, subject string, sequence uint64) error
}

var keepers = []keeper{
	{
		name: "named timers", side: "broker", env: []string{"DELAY_TIMERS=on", "DELAY_INSTANCE=one"}, home: "DELAY_TIMERS",
		root: "delaytimer.", fired: "orders.expire",
		config: jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}},
		set: func(_ int, in time.Duration) nats.Header {
			return nats.Header{wire.HeaderFor: {in.String()}}
		},
		cancel: func(ctx context.Context, k *kept, subject string, sequence uint64) error {
			_, err := k.js.PublishMsg(ctx, &nats.Msg{
				Subject: subject, Header: nats.Header(wire.CancelHeader(sequence, "paid")),
			})
			return err
		},
	},
	{
		name: "the server's schedules", side: "server", home: "SCHEDULES", root: "schedule.", fired: "fired.expire",
		config: jetstream.StreamConfig{
			Name: "SCHEDULES", Subjects: []string{"schedule.>", "fired.>"}, AllowMsgSchedules: true,
		},
		set: func(_ int, in time.Duration) nats.Header {
			return nats.Header{
				"Nats-Schedule":        {"@at " + time.Now().Add(in).UTC().Format(time.RFC3339Nano)},
				"Nats-Schedule-Target": {"fired.expire"},
			}
		},
		cancel: func(ctx context.Context, k *kept, _ string, sequence uint64) error {
			return k.api.Delete(ctx, k.home, sequence)
		},
	},
}

// BenchmarkTimers measures what a million things cost that are due tomorrow and may be changed until then, each on a
// subject of its own and with a body of 256 bytes: named timers, and the server's own schedules.
//
//	go test -run '^$' -bench Timers -benchtime 1x -timeout 1h ./test/rivals                    # a million of each
//	go test -run '^$' -bench Timers -benchtime 1x -timeout 1h ./test/rivals -timers 20000
//	go test -run '^$' -bench Timers -benchtime 1x -timeout 1h ./test/rivals -timers.side broker
//
// It reads /proc. Memory is resident memory for each that waits, garbage and caches included, when all markers are
// stored; live is that of a server which has collected its garbage, and restarted that of a broker which was started
// again. Then
// one client makes one request after the other: it gets, cancels, moves and fires a thousand that were set last (warm),
// and a thousand anywhere (cold: each touches another block of the stream). A fire ends with the arrival; there
// are a hundred. In the end the broker is killed and started again.
func BenchmarkTimers(b *testing.B) {
	costs := table{head: []string{
		"", "set/s", "at rest/s", "server B", "live B", "broker B", "restarted B", "stored B", "ready ms",
	}}
	verbs := table{head: []string{"", "", "get p50 ms", "p99", "cancel p50", "p99", "move p50", "p99", "fire p50", "p99"}}
	if !slices.Contains([]string{"both", "broker", "server"}, *timersSide) {
		b.Fatalf("-timers.side %s: want broker, server or both", *timersSide)
	}
	for _, k := range keepers {
		if *timersSide != "both" && *timersSide != k.side {
			continue
		}
		b.Run(strings.ReplaceAll(k.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				keep(b, k, &costs, &verbs)
				b.ReportMetric(0, "ns/op")
			}
		})
	}
	costs.print(fmt.Sprintf("BenchmarkTimers: %s of 256 bytes, due tomorrow", thousands(*timersKept)))
	verbs.print("one client, one request after the other")
}

// kept are those of one keeper, on its server.
type kept struct {
	keeper
	*load
	api       jsapi.Client
	sequences []uint64
	body      []byte
	arrived   *nats.Subscription
}

// keep measures one keeper.
func keep(b *testing.B, by keeper, costs, verbs *table) {
	const settle = 5 * time.Second
	server := startServer(b)
	ps := processes{server}
	if by.env != nil {
		ps = append(ps, startBroker(b, append(by.env, "NATS_URL="+server.url, "DELAY_PROVISION=create")...))
	}
	nc := server.connect()
	k := &kept{
		keeper: by, load: newLoad(b, nc), api: jsapi.Client{Conn: nc, API: "$JS.API"}, sequences: make([]uint64, *timersKept),
		body: make([]byte, bodySize),
	}
	k.load.stream(by.config)
	k.arrived = k.arrivals()
	time.Sleep(settle)
	before := []float64{server.memory(), server.live(), ps[len(ps)-1].memory()}
	start := time.Now()
	k.setAll()
	set := time.Since(start)
	k.awaitMarkers()
	rested := time.Since(start)
	time.Sleep(settle)
	each := func(now, before float64) string { return whole((now - before) * 1e6 / float64(*timersKept)) }
	row := []string{
		by.name, rate(set), rate(rested), each(server.memory(), before[0]), "–", "–", "–", k.stored(), "–",
	}
	if len(ps) > 1 {
		row[5] = each(ps[1].memory(), before[2])
	}
	row[4] = each(server.live(), before[1])

	// Cold first, while nothing was read. What is asked for is no more than a twentieth each.
	tries := timerTries()
	some := rand.New(rand.NewPCG(1, 1)).Perm(*timersKept - 4*tries)[:4*tries]
	verbs.row(append([]string{by.name, "cold"}, k.verbs(some)...)...)
	last := make([]int, 4*tries)
	for i := range last {
		last[i] = *timersKept - 4*tries + i
	}
	k.verbs(last[:4]) // so that the block is read
	verbs.row(append([]string{by.name, "warm"}, k.verbs(last[4:])...)...)

	if len(ps) > 1 {
		ps[1].kill()
		start := time.Now()
		ps[1] = startBroker(b, append(by.env, "NATS_URL="+server.url, "DELAY_PROVISION=create")...)
		row[8] = millis(bench.Milliseconds(time.Since(start)))
		time.Sleep(settle)
		row[6] = each(ps[1].memory(), before[2])
		ps[1].kill()
	}
	costs.row(row...)
	server.kill()
}

func rate(took time.Duration) string { return thousands(int(float64(*timersKept) / took.Seconds())) }

func (k *kept) subject(n int) string { return k.root + strconv.Itoa(n) + ".orders.expire" }

// arrivals are what the target's stream stores. The server puts what it has scheduled there without a publish, so that
// only a consumer sees it.
func (k *kept) arrivals() *nats.Subscription {
	k.b.Helper()
	js, err := k.nc.JetStream()
	if err != nil {
		k.b.Fatal(err)
	}
	sub, err := js.SubscribeSync(k.fired, nats.OrderedConsumer(), nats.DeliverNew(), nats.BindStream(k.config.Name))
	if err != nil {
		k.b.Fatal(err)
	}
	return sub
}

// setAll sets all, and notes their sequences.
func (k *kept) setAll() {
	k.b.Helper()
	js, err := jetstream.New(k.nc, jetstream.WithPublishAsyncMaxPending(2048))
	if err != nil {
		k.b.Fatal(err)
	}
	acks := make(chan jetstream.PubAckFuture, 2048)
	go func() {
		defer close(acks)
		for n := range *timersKept {
			f, err := js.PublishMsgAsync(&nats.Msg{
				Subject: k.subject(n), Header: k.set(n, 24*time.Hour), Data: k.body,
			}, jetstream.WithStallWait(time.Minute))
			if err != nil {
				k.b.Errorf("set %d: %v", n, err)
				return
			}
			acks <- f
		}
	}()
	n := 0
	for f := range acks {
		select {
		case ack := <-f.Ok():
			k.sequences[n] = ack.Sequence
		case err := <-f.Err():
			k.b.Fatalf("set %d: %v", n, err)
		}
		n++
	}
	if n != *timersKept {
		k.b.Fatalf("only %d were set", n)
	}
}

// awaitMarkers waits until a broker has a marker of each in a level.
func (k *kept) awaitMarkers() {
	if k.env == nil {
		return
	}
	for end := time.Now().Add(20 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		markers := uint64(0)
		for info := range k.js.ListStreams(context.Background()).Info() {
			if s := info.Config.Subjects; len(s) > 0 && strings.HasPrefix(s[0], prefix+".") || strings.Contains(
				strings.Join(s, " "), prefix+"sys.hop.") {
				markers += info.State.Msgs
			}
		}
		if markers >= uint64(*timersKept) {
			return
		}
		if time.Now().After(end) {
			k.b.Fatalf("there are only %d markers", markers)
		}
	}
}

// stored is how many bytes all streams have for each.
func (k *kept) stored() string {
	bytes := uint64(0)
	for info := range k.js.ListStreams(context.Background()).Info() {
		bytes += info.State.Bytes
	}
	return strconv.FormatUint(bytes/uint64(*timersKept), 10)
}

// verbs gets, cancels, moves and fires a quarter each of some, of fires a tenth of that, one after the other, and
// returns how long that took.
func (k *kept) verbs(some []int) (cells []string) {
	k.b.Helper()
	ctx := context.Background()
	quarter := len(some) / 4
	for verb, do := range []func(n int, subject string) error{
		func(_ int, subject string) error { _, err := k.api.Last(ctx, k.home, subject); return err },
		func(n int, subject string) error { return k.cancel(ctx, k, subject, k.sequences[n]) },
		func(n int, _ string) error { return k.setAnew(n, 25*time.Hour) },
		func(n int, _ string) error {
			if err := k.setAnew(n, 0); err != nil {
				return err
			}
			_, err := k.arrived.NextMsg(time.Minute)
			return err
		},
	} {
		took := bench.NewLateness()
		tries := some[verb*quarter : (verb+1)*quarter]
		if verb == 3 {
			tries = tries[:max(1, quarter/10)] // the server looks at its schedules once in a while
		}
		for _, n := range tries {
			start := time.Now()
			if err := do(n, k.subject(n)); err != nil {
				k.b.Fatalf("%s: verb %d of %d: %v", k.name, verb, n, err)
			}
			took.Record(time.Since(start))
		}
		spread := took.Spread()
		cells = append(cells, millis(spread.P50), millis(spread.P99))
	}
	return cells
}

// setAnew sets one again, if it still is what was set at first.
func (k *kept) setAnew(n int, in time.Duration) error {
	_, err := k.js.PublishMsg(context.Background(), &nats.Msg{
		Subject: k.subject(n), Header: k.set(n, in), Data: k.body,
	}, jetstream.WithExpectLastSequencePerSubject(k.sequences[n]))
	return err
}
