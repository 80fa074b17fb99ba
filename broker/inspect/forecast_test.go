package inspect

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestForecastLeavesOutDeleted: the forecast does not count deleted messages, and gaps in the sequence do not shift the
// due times of the other messages.
func TestForecastLeavesOutDeleted(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h 1d")
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		const hours, perHour = 4, 300
		for range hours {
			messages := make([]*nats.Msg, perHour)
			for n := range messages {
				messages[n] = newMsg("delay.1d.shop.a")
			}
			storeAll(t, i, messages...)
			time.Sleep(time.Hour)
		}
		deleted := make(map[uint64]uint64)
		for n := range uint64(hours * perHour) {
			if n%7 != 0 && n/100 != 5 { // deletes every seventh message, and a hundred consecutive messages
				continue
			}
			deleted[n/perHour]++
			if err := i.api.Delete(t.Context(), "DELAY_1d", n+1); err != nil {
				t.Fatal(err)
			}
		}
		for _, maxRead := range []uint64{0, 10_000} {
			f := forecastOf(t, i, ForecastQuery{Length: 24 * time.Hour, Step: time.Hour, MaxRead: maxRead})
			for n := range uint64(hours) {
				b := f.Buckets[20+n] // the first message leaves in 20 hours
				if want := perHour - deleted[n]; b.Messages != want {
					t.Errorf("hour %d, with %d read: forecast %d, want %d", n, f.Read, b.Messages, want)
				}
			}
		}
	})
}

// TestForecastOfRetiringLevels: the forecast counts the messages of a retiring level, for all targets and for one.
func TestForecastOfRetiringLevels(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		oldConfig := configOf(t, "", "1s 1h 2h")
		createStreams(t, s, oldConfig)
		messages := make([]*nats.Msg, 2*smallLane)
		for n := range messages {
			messages[n] = newMsg([]string{"delay.2h.shop.a", "delay.2h.mill.b"}[n%2])
		}
		storeAll(t, open(t, s, oldConfig, ""), messages...)
		newConfig := configOf(t, "", "1s 1h")
		createStreams(t, s, newConfig)
		i := open(t, s, newConfig, "")
		for target, want := range map[string]uint64{"": 2 * smallLane, "shop.>": smallLane, "mill.b": smallLane, "*": 0} {
			for _, maxRead := range []uint64{0, 10_000} {
				f := forecastOf(t, i, ForecastQuery{Length: 3 * time.Hour, Step: time.Hour, MaxRead: maxRead, Target: target})
				if got := f.Buckets[2].Messages; got != want || f.Pending != want {
					t.Errorf("for %q: %d of %d in the third hour, want %d", target, got, f.Pending, want)
				}
			}
		}
	})
}

// TestForecastOfNothing: without messages, or without streams, the forecast is exact, and all its buckets are zero.
func TestForecastOfNothing(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h")
		i := open(t, s, cfg, "")
		for _, name := range []string{"no streams", "empty streams"} {
			f := forecastOf(t, i, ForecastQuery{Length: 90 * time.Minute, Step: time.Hour})
			if !f.Exact || f.Pending != 0 || len(f.Buckets) != 2 || f.CountRequests != 0 || f.Later != (Amount{}) {
				t.Errorf("%s: got %+v, want an exact forecast of no messages", name, f)
			}
			createStreams(t, s, cfg)
		}
	})
}

// TestForecastOutsideBuckets: the forecast counts overdue messages, messages due after its end, and unreadable
// messages.
func TestForecastOutsideBuckets(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h 1d")
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		storeAll(t, i, newMsg("delay.1s.shop.a"), newMsg("delay.1h.shop.a"), newMsg("delay.1d.shop.a"),
			newMsg("delayin.soon.shop.a"),
			newMsg("delayin.30m.shop.a"), newMsg("delaysys.hop.1h.shop.forged"))
		storeRetries(t, i, "5s", newRequest(1, "shop.b").WithRefusal(time.Now(), time.Now().Add(20*time.Minute), "no"))
		time.Sleep(10 * time.Second)
		f := forecastOf(t, i, ForecastQuery{Length: 2 * time.Hour, Step: time.Hour, MaxRead: 100})
		got := fmt.Sprint([]Amount{f.Overdue, f.Buckets[0].Amount, f.Buckets[1].Amount, f.Later, f.Unreadable})
		if want := "[{1 0} {2 0} {1 0} {1 0} {2 0}]"; got != want || f.UnreadLanes == 0 {
			t.Errorf("got %s and %d unread lanes, want %s and at least one, because no broker runs", got, f.UnreadLanes, want)
		}
	})
}

// TestTargetsInHeaders: an operator seldom has the broker's list of targets that a header may name. The streams show
// that the broker accepts such headers, so the inspector can read their messages. A pattern cannot match these
// messages, and the forecast reports that.
func TestTargetsInHeaders(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h")
		cfg.HeaderTargets = []string{"shop.>"}
		createStreams(t, s, cfg)
		i := open(t, s, configOf(t, "", "1s 1h"), "")
		storeAll(t, i, newMsg("delay.1h", message.HeaderTarget, "shop.a"))
		f := forecastOf(t, i, ForecastQuery{Length: 2 * time.Hour, Step: time.Hour, MaxRead: 10})
		l := list(t, i, PendingQuery{})
		if f.Buckets[1].Messages != 1 || !f.Exact || len(l.Messages) != 1 || l.Messages[0].Target != "shop.a" {
			t.Errorf("got %+v and %+v, want the message to shop.a in both", f, l)
		}
		f = forecastOf(t, i, ForecastQuery{Length: 2 * time.Hour, Step: time.Hour, MaxRead: 10, Target: "shop.>"})
		l = list(t, i, PendingQuery{Target: "shop.>"})
		if f.Pending != 0 || f.Exact || !f.HeaderTargets || len(l.Messages) != 0 || !l.HeaderTargets {
			t.Errorf("by a pattern: got %+v and %+v, want no messages, and HeaderTargets true", f, l)
		}
	})
}

// TestForecastNeedsItsRights: a refused request ends the forecast immediately. The error names the subject.
func TestForecastNeedsItsRights(t *testing.T) {
	for refused, maxRead := range map[string]uint64{
		"$JS.API.CONSUMER.CREATE.>": 0, "$JS.API.CONSUMER.MSG.NEXT.>": 100, "$JS.API.STREAM.MSG.GET.>": 0,
	} {
		natstest.BubbleAs(t, natstest.DenyPublish(refused), func(t *testing.T, s *natstest.Server) {
			cfg := configOf(t, "", "1s 1h")
			createStreams(t, s, cfg)
			publish(t, open(t, s, cfg, ""), "delay.1h.shop.a")
			i := open(t, s, cfg, natstest.LimitedUser)
			began := time.Now()
			_, err := i.Forecast(t.Context(), ForecastQuery{Length: time.Hour, Step: time.Hour, MaxRead: maxRead})
			_, listErr := i.Pending(t.Context(), PendingQuery{Limit: 10, MaxRead: 100})
			for _, err := range []error{err, listErr} {
				if !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("without %s: got %v, want %v", refused, err, nats.ErrPermissionViolation)
				}
			}
			if elapsed := time.Since(began); elapsed > 2*time.Second {
				t.Errorf("without %s: the two calls took %s, want at most 2s", refused, elapsed)
			}
		})
	}
}
