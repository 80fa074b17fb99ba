package inspect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// arrivals counts the messages that arrive at the target in each minute.
type arrivals struct {
	mu      sync.Mutex // guards minutes
	minutes map[time.Time]uint64
}

func (a *arrivals) add(*nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.minutes[time.Now().UTC().Truncate(time.Minute)]++
}

func (a *arrivals) count(minute time.Time) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.minutes[minute.Truncate(time.Minute)]
}

func (a *arrivals) total() (total uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.minutes {
		total += n
	}
	return total
}

func (a *arrivals) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.minutes)
}

// startBroker runs a broker until the test ends, and counts its deliveries.
func startBroker(t *testing.T, s *natstest.Server, cfg broker.Config) *arrivals {
	t.Helper()
	arrivals := &arrivals{minutes: make(map[time.Time]uint64)}
	nc := s.Connect()
	if _, err := nc.Subscribe("shop.>", arrivals.add); err != nil {
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
	return arrivals
}

// TestForecastIsWhatFires compares the forecast for each minute with the number of deliveries in that minute. A
// forecast that reads all messages has no error. The error of a sampled forecast is within its bound.
func TestForecastIsWhatFires(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := inspect.ConfigOf(t, "", "1s 1m 10m 1h")
		cfg.RetryLadder = inspect.ConfigOf(t, "", "5s").Ladder
		inspect.CreateStreams(t, s, cfg)
		arrivals := startBroker(t, s, cfg)
		i := inspect.OpenAs(t, s, cfg, "")
		rng := rand.New(rand.NewPCG(7, 7))
		for range 8 {
			var messages []*nats.Msg
			for range 30 {
				messages = append(messages, inspect.NewMsg("delay.1h.shop.a"), inspect.NewMsg("delay.10m.shop.b"),
					inspect.NewMsg(fmt.Sprintf("delayin.%dm.shop.c", 1+rng.IntN(120))))
			}
			until := time.Now().Add(time.Hour + time.Duration(rng.IntN(60))*time.Minute)
			messages = append(messages, inspect.NewMsg("delay.1h.shop.d", "Delay-Until", until.UTC().Format(time.RFC3339Nano)))
			inspect.StoreAll(t, i, messages...)
			time.Sleep(7 * time.Minute)
		}
		time.Sleep(30 * time.Second) // moves the due times away from the ends of the buckets
		query := inspect.ForecastQuery{Length: 90 * time.Minute, Step: time.Minute, MaxRead: 1_000_000}
		exact := inspect.ForecastOf(t, i, query)
		query.MaxRead, query.Sample = 0, 150
		sampled := inspect.ForecastOf(t, i, query)
		arrivals.reset()
		time.Sleep(91 * time.Minute)
		synctest.Wait()

		var fired, deviation uint64
		outside := 0
		for n, b := range exact.Buckets {
			want := arrivals.count(b.From)
			fired += want
			if b.Messages != want || b.MaxError != 0 {
				t.Errorf("%s: forecast %d±%d, want exactly %d", b.From, b.Messages, b.MaxError, want)
			}
			r := sampled.Buckets[n]
			distance := max(r.Messages, want) - min(r.Messages, want)
			deviation += distance
			if distance > r.MaxError {
				outside++
			}
		}
		if !exact.Exact || exact.Sampled != 0 || exact.UnreadLanes != 0 {
			t.Errorf("all messages read: got %+v, want an exact forecast", exact)
		}
		if outside > len(sampled.Buckets)/20 {
			t.Errorf("sampled: in %d of %d minutes the error exceeds its bound, want at most 1 in 20", outside,
				len(sampled.Buckets))
		}
		if sampled.Exact || sampled.Ordered == 0 || sampled.Unplaced != 0 || fired < 400 || deviation > fired/3 {
			t.Errorf("sampled: the error is %d of %d messages, %d by order, %d without a due time; want less than a third",
				deviation, fired, sampled.Ordered, sampled.Unplaced)
		}
	})
}
