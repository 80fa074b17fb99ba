package timers

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimerWhoseLevelIsPurged: timers whose markers are lost fire at most two minutes late.
func TestTimerWhoseLevelIsPurged(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		for i := range 600 { // more timers than a sweep pass handles together
			c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), fmt.Sprint(i), "Delay-For", "30m")
		}
		time.Sleep(time.Minute)
		b.Stop() // the next broker has read no entry ahead
		c.Purge("DELAY_10m")
		b = b.Replace()
		time.Sleep(time.Until(start.Add(30*time.Minute)) - 1)
		synctest.Wait()
		harness.CheckCount(t, in.Arrivals(), 0)
		time.Sleep(2 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 600)
		time.Sleep(time.Minute)
		c.CheckNoTimers()
		if got := harness.Bodies(in.Arrivals()); len(in.Arrivals()) != 600 {
			t.Errorf("in the end %s arrived", got)
		}
		if got := b.Broker.Status().SweptTimers; got != 600 {
			t.Errorf("the sweep fired %d timers, want 600", got)
		}
	})
}

// TestSweepAfterTrouble: during a sweep pass, JetStream does not answer. A later pass finds the timers within three
// minutes.
func TestSweepAfterTrouble(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]string{
		"nothing can be read":                            "CONSUMER.CREATE.DELAY_TIMERS.sweep-",
		"the timers that the sweep found cannot be read": "STREAM.MSG.GET.DELAY_TIMERS",
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			trouble := harness.Mute(t, s, &cfg, silent)
			b, c := harness.Start(t, s, cfg)
			in := c.Subscribe("orders.>")
			start := time.Now()
			c.Publish("delaytimer.a.orders.x", "a", "Delay-For", "30m")
			c.Publish("delaytimer.b.orders.x", "b", "Delay-For", "32m")
			time.Sleep(time.Minute)
			b.Stop() // the next broker has read no entry ahead
			c.Purge("DELAY_10m")
			harness.StartBroker(t, s, cfg)
			time.Sleep(time.Until(start.Add(31*time.Minute - time.Second)))
			trouble.Store(true) // a second before the pass begins
			time.Sleep(20 * time.Second)
			trouble.Store(false)
			time.Sleep(time.Until(start.Add(33*time.Minute + 30*time.Second)))
			harness.CheckBodies(t, in.Arrivals(), "a b")
		})
	}
}

// TestTimerFoundAtTakeOver: when a broker starts, it fires a timer whose marker was lost while no broker ran, and a
// timer that an instance had fired and not delivered.
func TestTimerFoundAtTakeOver(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.a.orders.x", "a", "Delay-For", "30m")
		c.Publish("delaytimer.b.orders.x", "b", "Delay-For", "30m")
		c.Publish("delaytimer.c.orders.x", "c", "Delay-For", "90m")
		time.Sleep(time.Minute)
		b.Stop()
		c.Purge("DELAY_10m")
		c.Purge("DELAY_1h")
		c.Fire("delaytimer.b.orders.x", "ghost")
		time.Sleep(time.Hour)
		b.Replace()
		time.Sleep(time.Second)
		harness.CheckBodies(t, in.Arrivals(), "a b")
		time.Sleep(40 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "a b c")
		c.CheckNoTimers()
	})
}

// TestTimerCursor: after a restart, the broker reads only the entries after the cursor. Without a cursor, or with a
// forged cursor, it reads all entries.
func TestTimerCursor(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil   func(c *harness.Client)
		markers uint64
	}{
		"as it was left": {func(*harness.Client) {}, 20},
		"gone":           {forgetCursor, 40},
		"garbage":        {func(c *harness.Client) { c.Publish("delaysys.armed", "armed") }, 40},
		"forged": {func(c *harness.Client) {
			words := strings.Fields(string(c.LastEntry("delaysys.armed").Data))
			for range 30 {
				c.Publish("delaytimer.z.orders.x", "", "Delay-Cancel", "1")
			}
			c.Publish("delaytimer.unread.orders.x", "unread", "Delay-For", "3s")
			c.Publish("delaysys.armed", "armed 52 "+words[2])
		}, 40},
		"relayed": {func(c *harness.Client) {
			m := c.LastEntry("delaysys.armed")
			for range 30 {
				c.Publish("delaytimer.z.orders.x", "", "Delay-Cancel", "1")
			}
			if m.Header.Set("Nats-Stream", "DELAY_TIMERS"); m.Header.Get("Delay-Seal") == "" {
				c.T.Error("the cursor is not sealed")
			}
			c.Store(&nats.Msg{Subject: "delaysys.armed", Header: m.Header, Data: m.Data})
		}, 40},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			b, c := harness.Start(t, s, harness.TimerConfig(t))
			in := c.Subscribe("orders.>")
			start := time.Now()
			for i := range 20 {
				c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), fmt.Sprint(i), "Delay-For", "10m")
			}
			time.Sleep(time.Minute)
			b.Stop()
			tt.spoil(c)
			c.Publish("delaytimer.new.orders.x", "new", "Delay-For", "2s")
			harness.StartBroker(t, s, harness.TimerConfig(t))
			time.Sleep(3 * time.Second)
			if got := harness.Pending(c, "DELAY_10m") + harness.Pending(c, "DELAY_1m"); got != tt.markers {
				t.Errorf("there are %d markers, want %d", got, tt.markers)
			}
			want := map[string]int{"forged": 2}[name] // also the timer that the broker had not read
			if got := len(in.Arrivals()); got != max(want, 1) {
				t.Errorf("%d arrived, want %d", got, max(want, 1))
			}
			time.Sleep(time.Until(start.Add(11 * time.Minute)))
			if got := len(in.Arrivals()); got != 20+max(want, 1) {
				t.Errorf("%d arrived, want %d", got, 20+max(want, 1))
			}
			c.CheckNoTimers()
		})
	}
}

// TestTimerResetByHeartbeats: a timer of half a minute is reset every two seconds for an hour. It gets a marker only
// after the last reset, and the stream keeps only its last set.
func TestTimerResetByHeartbeats(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in, markers := c.Subscribe("orders.>"), c.Subscribe("delaysys.hop.>")
		var last time.Time
		for i := range 1800 {
			last = time.Now()
			c.Publish("delaytimer.session.orders.x", fmt.Sprint(i), "Delay-For", "30s")
			time.Sleep(2 * time.Second)
		}
		if got := len(markers.Arrivals()); got > 0 {
			t.Errorf("%d markers were sent", got)
		}
		if got := harness.Pending(c, "DELAY_TIMERS"); got != 2 {
			t.Errorf("%d entries are stored, want the last set and the cursor", got)
		}
		harness.CheckExactly(t, in, last.Add(30*time.Second), 0)
		if got := in.Arrivals()[0].Body; got != "1799" {
			t.Errorf("set %s fired, want the last set", got)
		}
	})
}

// TestTimerSetAgainAndAgain: a key that is set a hundred times a second gets no marker until the sets stop, and the
// stream has at most 1 MiB. TIMER_RESETS is the number of sets, by default 3,000. test/README.md has the
// command for an hour.
func TestTimerSetAgainAndAgain(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		resets, _ := strconv.Atoi(os.Getenv("TIMER_RESETS"))
		resets = cmp.Or(resets, 3000)
		c := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
		in := c.Subscribe("orders.>")
		var last time.Time
		for i := range resets {
			last = time.Now()
			c.Publish("delaytimer.key.orders.x", fmt.Sprint(i), "Delay-For", "5m")
			time.Sleep(10 * time.Millisecond)
			if i%1000 != 999 {
				continue
			}
			if got := harness.Pending(c, "DELAY_TIMERS"); got > 3 {
				t.Errorf("after %d sets, %d are stored", i+1, got)
			}
		}
		if left := c.Stream("DELAY_TIMERS").CachedInfo().State.Bytes; left > 1<<20 {
			t.Errorf("after %d sets the stream has %d bytes", resets, left)
		} else {
			t.Logf("after %d sets the stream has %d bytes", resets, left)
		}
		time.Sleep(12 * time.Second)
		if got := lastSequence(c, "DELAY_1m"); got != 1 {
			t.Errorf("%d markers were sent, want 1", got)
		}
		if got := lastSequence(c, "DELAY_TIMERS"); got > uint64(resets+resets/10+40) {
			t.Errorf("%d entries were written for %d sets", got, resets)
		}
		harness.CheckExactly(t, in, last.Add(5*time.Minute), 0)
		if got := in.Arrivals()[0].Body; got != fmt.Sprint(resets-1) {
			t.Errorf("%q arrived, want the last", got)
		}
	})
}

// lastSequence returns the last sequence of a stream.
func lastSequence(c *harness.Client, stream string) uint64 {
	c.T.Helper()
	return c.Stream(stream).CachedInfo().State.LastSeq
}

// TestTimersStreamRecreated: an operator deletes the stream, and the running broker creates it again. Timers that are
// set afterwards fire.
func TestTimersStreamRecreated(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		for i := range 50 {
			c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), "old", "Delay-For", "10m")
		}
		time.Sleep(10 * time.Second)
		c.Create(c.Remove("DELAY_TIMERS"))
		for i := range 10 {
			c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), fmt.Sprint(i), "Delay-For", "15m")
		}
		time.Sleep(30 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "0 1 2 3 4 5 6 7 8 9")
		c.CheckNoTimers()
	})
}

// TestNoSweepWithoutOverdue: while no timer can be overdue, sweep passes do not repeat.
func TestNoSweepWithoutOverdue(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in, passes := c.Subscribe("orders.>"), c.Subscribe("$JS.API.CONSUMER.CREATE.DELAY_TIMERS.*")
		start := time.Now()
		c.Publish("delaytimer.key.orders.x", "x", "Delay-For", "5h")
		harness.CheckExactly(t, in, start.Add(5*time.Hour), 0)
		time.Sleep(5 * time.Hour)
		count := 0
		for _, a := range passes.Arrivals() {
			if strings.HasPrefix(a.Subject, "$JS.API.CONSUMER.CREATE.DELAY_TIMERS.sweep-") {
				count++
			}
		}
		if count < 1 || count > 3 {
			t.Errorf("there were %d passes in ten hours, want one to three", count)
		}
	})
}
