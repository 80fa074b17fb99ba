package inspect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// drawn returns random numbers that are the same in each run.
func drawn(seed uint64) func(n uint64) uint64 { return rand.New(rand.NewPCG(seed, 1)).Uint64N }

// ahead returns a forecast with random numbers that are the same in each run.
func ahead(t *testing.T, i *Inspector, look AheadLook) Forecast {
	t.Helper()
	look.draw = drawn(1)
	f, err := i.Ahead(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// storeAll publishes messages at once, and waits until all are stored.
func storeAll(t *testing.T, i *Inspector, all ...*nats.Msg) {
	t.Helper()
	for _, m := range all {
		if err := i.Conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Flush(t, i.Conn)
	synctest.Wait()
}

func to(subject string, header ...string) *nats.Msg {
	m := nats.NewMsg(subject)
	for n := 0; n < len(header); n += 2 {
		m.Header.Set(header[n], header[n+1])
	}
	return m
}

// onTheWay returns a hop in a level, with its final due time.
func onTheWay(i *Inspector, level, target string, n uint64, due time.Time) *nats.Msg {
	id := message.ID{Stream: "DELAY_INTAKE", Sequence: n, At: time.Now().UTC()}
	r := message.Request{ID: id.String(), Target: target, Accepted: id.At, Due: due.UTC()}
	m := nats.NewMsg(i.names.Hop(level, target))
	m.Header = nats.Header(r.HopHeader())
	return m
}

// arrivals counts messages at the target, by the minute.
type arrivals struct {
	mu      sync.Mutex // guards minutes
	minutes map[time.Time]uint64
}

func (a *arrivals) add(*nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.minutes[time.Now().UTC().Truncate(time.Minute)]++
}

func (a *arrivals) in(minute time.Time) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.minutes[minute.Truncate(time.Minute)]
}

func (a *arrivals) total() (all uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.minutes {
		all += n
	}
	return all
}

func (a *arrivals) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.minutes)
}

// serving runs a broker until the test ends, and counts the arrivals.
func serving(t *testing.T, s *natstest.Server, cfg broker.Config) *arrivals {
	t.Helper()
	arrived := &arrivals{minutes: make(map[time.Time]uint64)}
	nc := s.Connect()
	if _, err := nc.Subscribe("shop.>", arrived.add); err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(broker.Links{
		Read: s.Connect(), Write: s.Connect(), Deliver: s.Connect(), Control: s.Connect(),
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-b.Ready()
	return arrived
}

// TestForecastIsWhatFires: the forecast for each minute is the number of arrivals in it. It is exact if all was read.
// By the order of the lanes and a sample, it is within its stated error.
func TestForecastIsWhatFires(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1m 10m 1h")
		cfg.RetryLadder = with(t, "", "5s").Ladder
		provision(t, s, cfg)
		arrived := serving(t, s, cfg)
		i := open(t, s, cfg, "")
		rng := rand.New(rand.NewPCG(7, 7))
		for range 8 {
			var all []*nats.Msg
			for range 30 {
				all = append(all, to("delay.1h.shop.a"), to("delay.10m.shop.b"),
					to(fmt.Sprintf("delayin.%dm.shop.c", 1+rng.IntN(120))))
			}
			until := time.Now().Add(time.Hour + time.Duration(rng.IntN(60))*time.Minute)
			all = append(all, to("delay.1h.shop.d", "Delay-Until", until.UTC().Format(time.RFC3339Nano)))
			storeAll(t, i, all...)
			time.Sleep(7 * time.Minute)
		}
		time.Sleep(30 * time.Second) // no message fires at the end of a minute
		look := AheadLook{For: 90 * time.Minute, By: time.Minute, Most: 1_000_000}
		whole := ahead(t, i, look)
		look.Most, look.Sample = 0, 150
		rough := ahead(t, i, look)
		arrived.forget()
		time.Sleep(91 * time.Minute)
		synctest.Wait()

		var fired, off uint64
		outside := 0
		for n, b := range whole.Buckets {
			want := arrived.in(b.From)
			fired += want
			if b.Messages != want || b.Within != 0 {
				t.Errorf("%s: forecast %d±%d, want exactly %d", b.From, b.Messages, b.Within, want)
			}
			r := rough.Buckets[n]
			distance := max(r.Messages, want) - min(r.Messages, want)
			off += distance
			if distance > r.Within {
				outside++
			}
		}
		if !whole.Exact || whole.Sampled != 0 || whole.Unread != 0 {
			t.Errorf("read whole: %+v", whole)
		}
		if outside > len(rough.Buckets)/20 {
			t.Errorf("%d of %d minutes are off by more than is said, want at most 1 in 20", outside, len(rough.Buckets))
		}
		if rough.Exact || rough.Ordered == 0 || rough.Unplaced != 0 || fired < 400 || off > fired/3 {
			t.Errorf("sampled: off by %d of %d, %d ordered, %d unplaced", off, fired, rough.Ordered, rough.Unplaced)
		}
	})
}

const manyHours, manyEach = 20, 5200 // messages in each hour

// storeMany stores a hundred thousand messages in the level of a day, manyEach in each hour. One of 26 goes on from
// there. It returns the number of those by due hour and target.
func storeMany(t *testing.T, i *Inspector) (further map[string]map[int]uint64) {
	t.Helper()
	further = map[string]map[int]uint64{"shop.b": make(map[int]uint64), "mill.b": make(map[int]uint64)}
	for hour := range manyHours {
		all := make([]*nats.Msg, 0, manyEach)
		for n := range manyEach {
			if n%26 != 0 {
				all = append(all, to("delay.1d.shop.a"))
				continue
			}
			due, target := 24+hour+n%7, "shop.b"
			if n%52 == 0 {
				due, target = 24+hour/2+10, "mill.b"
			}
			further[target][due]++
			all = append(all, onTheWay(i, "1d", target, uint64(hour*manyEach+n),
				time.Now().Add(time.Duration(due-hour)*time.Hour)))
		}
		storeAll(t, i, all...)
		time.Sleep(time.Hour)
	}
	return further
}

// TestForecastOfMany: of a hundred thousand messages in a level the forecast has the exact number for each hour without
// reading them. For messages that go on from there it uses a sample, within the error that it states.
func TestForecastOfMany(t *testing.T) {
	natstest.Long(t)
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1h 1d")
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		began := time.Now()
		further := storeMany(t, i)
		const direct = manyEach - manyEach/26
		time.Sleep(3 * time.Hour) // the first are due in an hour
		check := func(f Forecast, target string) {
			t.Helper()
			for _, b := range f.Buckets {
				hour := int(b.From.Sub(began).Round(time.Hour).Hours())
				want := further["mill.b"][hour]
				if target == "" {
					want += further["shop.b"][hour]
				}
				if target == "" && hour >= 24 && hour < 24+manyHours {
					want += direct
				}
				// If no message of a sample has this target, none is forecast for these hours.
				if distance := max(b.Messages, want) - min(b.Messages, want); distance > b.Within ||
					target != "" && want == 0 && b.Messages > 0 {
					t.Errorf("for %q, hour %d: forecast %d±%d, want %d", target, hour, b.Messages, b.Within, want)
				}
			}
		}
		look := AheadLook{For: 30 * time.Hour, By: time.Hour, Most: 1000}
		f := ahead(t, i, look)
		check(f, "")
		if slices.ContainsFunc(f.Buckets, func(b Bucket) bool { return b.Within > manyEach/10 }) {
			t.Errorf("the errors say nothing: %+v", f.Buckets)
		}
		if f.Pending != manyHours*manyEach || f.Ordered != manyHours*direct || f.Read != 0 ||
			f.Sampled > 2*sampleMost || f.Questions > manyHours+10 {
			t.Errorf("%d pending, and %+v", f.Pending, f.Work)
		}
		look.cuts = 5
		few := ahead(t, i, look)
		check(few, "")
		if few.Questions != 5+3 {
			t.Errorf("%d questions, want 5, a count of each kind and one of markers", few.Questions)
		}
		look.Target = "mill.*"
		sampled := ahead(t, i, look)
		check(sampled, "mill.b")
		look.Most = 5000
		whole := ahead(t, i, look)
		check(whole, "mill.b")
		const rare = manyHours * manyEach / 52
		if sampled.Exact || !whole.Exact || whole.Pending != rare || sampled.Pending != rare {
			t.Errorf("for one target: %+v and %+v", sampled.Parts, whole.Parts)
		}
		if left := consumersOf(t, i, "DELAY_1d"); left != 0 {
			t.Errorf("left behind: %d consumers", left)
		}
	})
}

// TestForecastOfDelayUntil: a level's order gives the times at which messages leave, and a sample the share that is due
// later.
func TestForecastOfDelayUntil(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1h")
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		const messages = 6000
		later := time.Now().Add(20 * time.Hour).UTC().Format(time.RFC3339Nano)
		all := make([]*nats.Msg, messages)
		for n := range all {
			if all[n] = to("delay.1h.shop.a"); n%3 == 0 {
				all[n].Header.Set(message.HeaderUntil, later)
			}
		}
		storeAll(t, i, all...)
		time.Sleep(time.Minute)
		f := ahead(t, i, AheadLook{For: 3 * time.Hour, By: time.Hour})
		for what, got := range map[string]struct {
			Amount
			want int
		}{
			"in an hour": {f.Buckets[1].Amount, messages - messages/3}, "later": {f.Later, messages / 3},
			"in between": {f.Buckets[2].Amount, 0},
		} {
			off := max(int(got.Messages), got.want) - min(int(got.Messages), got.want)
			if off > int(got.Within) || off > messages/30 || got.Within > messages/15 {
				t.Errorf("%s: forecast %d±%d, want %d", what, got.Messages, got.Within, got.want)
			}
		}
		if f.Ordered != messages || f.Exact {
			t.Errorf("%d by the order, exact is %v", f.Ordered, f.Exact)
		}

		storeAll(t, i, onTheWay(i, "1h", "mill.rare", 1, time.Now().Add(2*time.Hour)))
		rare := ahead(t, i, AheadLook{For: 3 * time.Hour, By: time.Hour, Target: "mill.*", Sample: 50})
		if rare.Pending != 1 || rare.Unplaced != 1 || rare.Exact {
			t.Errorf("one that no sample met: %d of %d are not placed, exact is %v", rare.Unplaced, rare.Pending, rare.Exact)
		}
	})
}

// TestForecastLeavesOutDeleted: deleted messages are not due, and gaps do not shift the others.
func TestForecastLeavesOutDeleted(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1h 1d")
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		const hours, each = 4, 300
		for range hours {
			all := make([]*nats.Msg, each)
			for n := range all {
				all[n] = to("delay.1d.shop.a")
			}
			storeAll(t, i, all...)
			time.Sleep(time.Hour)
		}
		gone := make(map[uint64]uint64)
		for n := range uint64(hours * each) {
			if n%7 != 0 && n/100 != 5 { // every seventh, and a hundred in a row
				continue
			}
			gone[n/each]++
			if err := i.api.Delete(t.Context(), "DELAY_1d", n+1); err != nil {
				t.Fatal(err)
			}
		}
		for _, most := range []uint64{0, 10_000} {
			f := ahead(t, i, AheadLook{For: 24 * time.Hour, By: time.Hour, Most: most})
			for n := range uint64(hours) {
				b := f.Buckets[20+n] // the first stays 20 hours more
				if want := each - gone[n]; b.Messages != want {
					t.Errorf("hour %d, with %d read: forecast %d, want %d", n, f.Read, b.Messages, want)
				}
			}
		}
	})
}

// TestForecastOfRetiringLevels: messages in a level that takes no new ones are forecast too, also by target.
func TestForecastOfRetiringLevels(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		before := with(t, "", "1s 1h 2h")
		provision(t, s, before)
		all := make([]*nats.Msg, 2*smallLane)
		for n := range all {
			all[n] = to([]string{"delay.2h.shop.a", "delay.2h.mill.b"}[n%2])
		}
		storeAll(t, open(t, s, before, ""), all...)
		after := with(t, "", "1s 1h")
		provision(t, s, after)
		i := open(t, s, after, "")
		for target, want := range map[string]uint64{"": 2 * smallLane, "shop.>": smallLane, "mill.b": smallLane, "*": 0} {
			for _, most := range []uint64{0, 10_000} {
				f := ahead(t, i, AheadLook{For: 3 * time.Hour, By: time.Hour, Most: most, Target: target})
				if got := f.Buckets[2].Messages; got != want || f.Pending != want {
					t.Errorf("for %q: %d of %d in the third hour, want %d (%+v)", target, got, f.Pending, want, f.Parts)
				}
			}
		}
	})
}

// TestForecastOfNothing: without messages, or without streams, the forecast is an exact zero, with all its buckets.
func TestForecastOfNothing(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1h")
		i := open(t, s, cfg, "")
		for _, what := range []string{"no streams", "empty streams"} {
			f := ahead(t, i, AheadLook{For: 90 * time.Minute, By: time.Hour})
			if !f.Exact || f.Pending != 0 || len(f.Buckets) != 2 || f.Questions != 0 || f.Later != (Amount{}) {
				t.Errorf("%s: got %+v", what, f)
			}
			provision(t, s, cfg)
		}
	})
}

// TestForecastTellsWhatIsNotDue: the forecast counts overdue messages, messages due after its end, and undeliverable
// ones.
func TestForecastTellsWhatIsNotDue(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1h 1d")
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		storeAll(t, i, to("delay.1s.shop.a"), to("delay.1h.shop.a"), to("delay.1d.shop.a"), to("delayin.soon.shop.a"),
			to("delayin.30m.shop.a"), to("delaysys.hop.1h.shop.forged"))
		waits(t, i, "5s", toRetry(1, "shop.b").Refused(time.Now(), time.Now().Add(20*time.Minute), "no"))
		time.Sleep(10 * time.Second)
		f := ahead(t, i, AheadLook{For: 2 * time.Hour, By: time.Hour, Most: 100})
		got := fmt.Sprint([]Amount{f.Overdue, f.Buckets[0].Amount, f.Buckets[1].Amount, f.Later, f.Unreadable})
		if want := "[{1 0} {2 0} {1 0} {1 0} {2 0}]"; got != want || f.Unread == 0 {
			t.Errorf("got %s and %d unread lanes, want %s and some: no broker runs", got, f.Unread, want)
		}
	})
}

// TestTargetsInHeaders: an operator seldom has the broker's list of targets for headers. The streams show that the
// broker takes some, and so their messages can be read. No pattern matches them, and the forecast reports that.
func TestTargetsInHeaders(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := with(t, "", "1s 1h")
		cfg.HeaderTargets = []string{"shop.>"}
		provision(t, s, cfg)
		i := open(t, s, with(t, "", "1s 1h"), "")
		storeAll(t, i, to("delay.1h", message.HeaderTarget, "shop.a"))
		f := ahead(t, i, AheadLook{For: 2 * time.Hour, By: time.Hour, Most: 10})
		l := list(t, i, PendingLook{})
		if f.Buckets[1].Messages != 1 || !f.Exact || len(l.Messages) != 1 || l.Messages[0].Target != "shop.a" {
			t.Errorf("got %+v and %+v", f, l)
		}
		f = ahead(t, i, AheadLook{For: 2 * time.Hour, By: time.Hour, Most: 10, Target: "shop.>"})
		l = list(t, i, PendingLook{Target: "shop.>"})
		if f.Pending != 0 || f.Exact || !f.Bare || len(l.Messages) != 0 || !l.Bare {
			t.Errorf("by a pattern: got %+v and %+v, want that they are left out, and that it is said", f, l)
		}
	})
}

// TestForecastNeedsItsRights: a refused request ends the forecast at once. The error names the subject.
func TestForecastNeedsItsRights(t *testing.T) {
	for refused, most := range map[string]uint64{
		"$JS.API.CONSUMER.CREATE.>": 0, "$JS.API.CONSUMER.MSG.NEXT.>": 100, "$JS.API.STREAM.MSG.GET.>": 0,
	} {
		bubble(t, natstest.Denied(refused), func(t *testing.T, s *natstest.Server) {
			cfg := with(t, "", "1s 1h")
			provision(t, s, cfg)
			publish(t, open(t, s, cfg, ""), "delay.1h.shop.a")
			i := open(t, s, cfg, tried)
			began := time.Now()
			_, err := i.Ahead(t.Context(), AheadLook{For: time.Hour, By: time.Hour, Most: most})
			_, listing := i.Pending(t.Context(), PendingLook{Limit: 10, Most: 100})
			for _, err := range []error{err, listing} {
				if !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("without %s: got %v", refused, err)
				}
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("without %s: it took %s", refused, took)
			}
		})
	}
}

// consumersOf returns the number of consumers of a stream.
func consumersOf(t *testing.T, i *Inspector, stream string) int {
	t.Helper()
	st, err := i.JetStream.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.Consumers
}
