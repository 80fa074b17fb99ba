package inspect

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// drawn returns a function that draws the same random numbers in each run.
func drawn(seed uint64) func(n uint64) uint64 { return rand.New(rand.NewPCG(seed, 1)).Uint64N }

// forecastOf returns a forecast that draws the same random numbers in each run.
func forecastOf(t *testing.T, i *Inspector, query ForecastQuery) Forecast {
	t.Helper()
	query.draw = drawn(1)
	f, err := i.Forecast(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const manyHours, manyEach = 20, 5200 // number of hours, and of messages in each hour

// storeMany stores a hundred thousand messages in the level of a day, manyEach in each hour. Every 26th is a hop, which
// is due later. It returns the number of hops by due hour and target.
func storeMany(t *testing.T, i *Inspector) (further map[string]map[int]uint64) {
	t.Helper()
	further = map[string]map[int]uint64{"shop.b": make(map[int]uint64), "mill.b": make(map[int]uint64)}
	for hour := range manyHours {
		all := make([]*nats.Msg, 0, manyEach)
		for n := range manyEach {
			if n%26 != 0 {
				all = append(all, newMsg("delay.1d.shop.a"))
				continue
			}
			due, target := 24+hour+n%7, "shop.b"
			if n%52 == 0 {
				due, target = 24+hour/2+10, "mill.b"
			}
			further[target][due]++
			all = append(all, newHop(i, "1d", target, uint64(hour*manyEach+n),
				time.Now().Add(time.Duration(due-hour)*time.Hour)))
		}
		storeAll(t, i, all...)
		time.Sleep(time.Hour)
	}
	return further
}

// TestForecastOfMany: for a hundred thousand messages in a level, the forecast has the exact number for each hour
// without reading them. For hops it uses a sample, and the numbers are within the stated error.
func TestForecastOfMany(t *testing.T) {
	natstest.Long(t)
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h 1d")
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		began := time.Now()
		further := storeMany(t, i)
		const direct = manyEach - manyEach/26
		time.Sleep(3 * time.Hour) // the first messages are due in an hour
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
				// In an hour in which no message of this target is due, the forecast is zero.
				if distance := max(b.Messages, want) - min(b.Messages, want); distance > b.MaxError ||
					target != "" && want == 0 && b.Messages > 0 {
					t.Errorf("for %q, hour %d: forecast %d±%d, want %d", target, hour, b.Messages, b.MaxError, want)
				}
			}
		}
		query := ForecastQuery{Length: 30 * time.Hour, Step: time.Hour, MaxRead: 1000}
		f := forecastOf(t, i, query)
		check(f, "")
		if slices.ContainsFunc(f.Buckets, func(b Bucket) bool { return b.MaxError > manyEach/10 }) {
			t.Errorf("the stated errors are larger than a tenth of the messages: %+v", f.Buckets)
		}
		if f.Pending != manyHours*manyEach || f.Ordered != manyHours*direct || f.Read != 0 ||
			f.Sampled > 2*maxSample || f.CountRequests > manyHours+10 {
			t.Errorf("%d pending, and %+v", f.Pending, f.Work)
		}
		query.maxCuts = 5
		few := forecastOf(t, i, query)
		check(few, "")
		if few.CountRequests != 5+3 {
			t.Errorf("%d count requests, want 5, and one each for messages, hops and markers", few.CountRequests)
		}
		query.Target = "mill.*"
		sampled := forecastOf(t, i, query)
		check(sampled, "mill.b")
		query.MaxRead = 5000
		whole := forecastOf(t, i, query)
		check(whole, "mill.b")
		const rare = manyHours * manyEach / 52
		if sampled.Exact || !whole.Exact || whole.Pending != rare || sampled.Pending != rare {
			t.Errorf("for one target: %+v and %+v", sampled.Parts, whole.Parts)
		}
		if left := consumersOf(t, i, "DELAY_1d"); left != 0 {
			t.Errorf("%d consumers remain, want none", left)
		}
	})
}

// TestForecastOfDelayUntil: the order of a level gives the times at which its messages leave, and a sample gives the
// share of messages that are due later.
func TestForecastOfDelayUntil(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h")
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		const messages = 6000
		later := time.Now().Add(20 * time.Hour).UTC().Format(time.RFC3339Nano)
		all := make([]*nats.Msg, messages)
		for n := range all {
			if all[n] = newMsg("delay.1h.shop.a"); n%3 == 0 {
				all[n].Header.Set(message.HeaderUntil, later)
			}
		}
		storeAll(t, i, all...)
		time.Sleep(time.Minute)
		f := forecastOf(t, i, ForecastQuery{Length: 3 * time.Hour, Step: time.Hour})
		for what, got := range map[string]struct {
			Amount
			want int
		}{
			"in an hour": {f.Buckets[1].Amount, messages - messages/3}, "later": {f.Later, messages / 3},
			"in between": {f.Buckets[2].Amount, 0},
		} {
			off := max(int(got.Messages), got.want) - min(int(got.Messages), got.want)
			if off > int(got.MaxError) || off > messages/30 || got.MaxError > messages/15 {
				t.Errorf("%s: forecast %d±%d, want %d", what, got.Messages, got.MaxError, got.want)
			}
		}
		if f.Ordered != messages || f.Exact {
			t.Errorf("%d messages were placed by their order, want %d; exact is %v, want false", f.Ordered, messages, f.Exact)
		}

		storeAll(t, i, newHop(i, "1h", "mill.rare", 1, time.Now().Add(2*time.Hour)))
		rare := forecastOf(t, i, ForecastQuery{Length: 3 * time.Hour, Step: time.Hour, Target: "mill.*", Sample: 50})
		if rare.Pending != 1 || rare.Unplaced != 1 || rare.Exact {
			t.Errorf("an empty sample: the due times of %d of %d messages are unknown, exact is %v",
				rare.Unplaced, rare.Pending, rare.Exact)
		}
	})
}
