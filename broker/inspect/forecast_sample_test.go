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

// seededDraw returns a function that draws the same random numbers in each run.
func seededDraw(seed uint64) func(n uint64) uint64 { return rand.New(rand.NewPCG(seed, 1)).Uint64N }

// forecastOf returns a forecast that draws the same random numbers in each run.
func forecastOf(t *testing.T, i *Inspector, query ForecastQuery) Forecast {
	t.Helper()
	query.draw = seededDraw(1)
	f, err := i.Forecast(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const busyHours, messagesPerHour = 20, 5200 // number of hours, and of messages in each hour

// storeHours stores a hundred thousand messages in the level of a day, messagesPerHour in each hour. Every 26th message
// is a hop with a later due time. It returns the number of hops by target and due hour.
func storeHours(t *testing.T, i *Inspector) (hopsDue map[string]map[int]uint64) {
	t.Helper()
	hopsDue = map[string]map[int]uint64{"shop.b": make(map[int]uint64), "mill.b": make(map[int]uint64)}
	for hour := range busyHours {
		messages := make([]*nats.Msg, 0, messagesPerHour)
		for n := range messagesPerHour {
			if n%26 != 0 {
				messages = append(messages, newMsg("delay.1d.shop.a"))
				continue
			}
			due, target := 24+hour+n%7, "shop.b"
			if n%52 == 0 {
				due, target = 24+hour/2+10, "mill.b"
			}
			hopsDue[target][due]++
			messages = append(messages, newHop(i, "1d", target, uint64(hour*messagesPerHour+n),
				time.Now().Add(time.Duration(due-hour)*time.Hour)))
		}
		storeAll(t, i, messages...)
		time.Sleep(time.Hour)
	}
	return hopsDue
}

// TestForecastOfMany: for a hundred thousand messages in a level, the forecast has the exact number for each hour
// without reading the messages. For hops it uses a sample, and the error is within its bound.
func TestForecastOfMany(t *testing.T) {
	natstest.SkipShort(t)
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h 1d")
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		began := time.Now()
		hopsDue := storeHours(t, i)
		const direct = messagesPerHour - messagesPerHour/26
		time.Sleep(3 * time.Hour) // the first messages are due in an hour
		check := func(f Forecast, target string) {
			t.Helper()
			for _, b := range f.Buckets {
				hour := int(b.From.Sub(began).Round(time.Hour).Hours())
				want := hopsDue["mill.b"][hour]
				if target == "" {
					want += hopsDue["shop.b"][hour]
				}
				if target == "" && hour >= 24 && hour < 24+busyHours {
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
		if slices.ContainsFunc(f.Buckets, func(b Bucket) bool { return b.MaxError > messagesPerHour/10 }) {
			t.Errorf("a maximum error is larger than a tenth of the messages of an hour: %+v", f.Buckets)
		}
		if f.Pending != busyHours*messagesPerHour || f.Ordered != busyHours*direct || f.Read != 0 ||
			f.Sampled > 2*maxSample || f.CountRequests > busyHours+10 {
			t.Errorf("got %d pending, and %+v, want all messages counted by their order", f.Pending, f)
		}
		query.maxCuts = 5
		coarse := forecastOf(t, i, query)
		check(coarse, "")
		if coarse.CountRequests != 5+3 {
			t.Errorf("%d count requests, want 5, and one each for messages, hops and markers", coarse.CountRequests)
		}
		query.Target = "mill.*"
		sampled := forecastOf(t, i, query)
		check(sampled, "mill.b")
		query.MaxRead = 5000
		exact := forecastOf(t, i, query)
		check(exact, "mill.b")
		const rare = busyHours * messagesPerHour / 52
		if sampled.Exact || !exact.Exact || exact.Pending != rare || sampled.Pending != rare {
			t.Errorf("for one target: got %+v sampled, and %+v read, want an exact forecast only from the read messages",
				sampled, exact)
		}
		if count := consumersOf(t, i, "DELAY_1d"); count != 0 {
			t.Errorf("%d consumers remain, want none", count)
		}
	})
}

// TestForecastOfDelayUntil: the order of a level gives the times at which its messages leave, and a sample gives the
// share of messages that are due after they leave.
func TestForecastOfDelayUntil(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h")
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		const messages = 6000
		dueTime := time.Now().Add(20 * time.Hour).UTC().Format(time.RFC3339Nano)
		requests := make([]*nats.Msg, messages)
		for n := range requests {
			if requests[n] = newMsg("delay.1h.shop.a"); n%3 == 0 {
				requests[n].Header.Set(message.HeaderUntil, dueTime)
			}
		}
		storeAll(t, i, requests...)
		time.Sleep(time.Minute)
		f := forecastOf(t, i, ForecastQuery{Length: 3 * time.Hour, Step: time.Hour})
		for name, got := range map[string]struct {
			Amount
			want int
		}{
			"in an hour": {f.Buckets[1].Amount, messages - messages/3}, "later": {f.Later, messages / 3},
			"in between": {f.Buckets[2].Amount, 0},
		} {
			distance := max(int(got.Messages), got.want) - min(int(got.Messages), got.want)
			if distance > int(got.MaxError) || distance > messages/30 || got.MaxError > messages/15 {
				t.Errorf("%s: forecast %d±%d, want %d", name, got.Messages, got.MaxError, got.want)
			}
		}
		if f.Ordered != messages || f.Exact {
			t.Errorf("%d messages were placed by their order, want %d; exact is %v, want false", f.Ordered, messages, f.Exact)
		}

		storeAll(t, i, newHop(i, "1h", "mill.rare", 1, time.Now().Add(2*time.Hour)))
		rare := forecastOf(t, i, ForecastQuery{Length: 3 * time.Hour, Step: time.Hour, Target: "mill.*", Sample: 50})
		if rare.Pending != 1 || rare.Unplaced != 1 || rare.Exact {
			t.Errorf("an empty sample: the due times of %d of %d messages are unknown, exact is %v; want 1 of 1, false",
				rare.Unplaced, rare.Pending, rare.Exact)
		}
	})
}
