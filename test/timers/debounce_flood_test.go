package timers

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// slowStore returns a configuration of a broker whose requests to read and to delete timers take five milliseconds
// each. So a thousand sets a second come faster than the broker could read them one by one.
func slowStore(t *testing.T, s *natstest.Server) broker.Config {
	api := s.Connect()
	cfg := harness.TimerConfig(t)
	cfg.APIPrefix = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		slow := strings.HasPrefix(question, "STREAM.MSG.") && strings.HasSuffix(question, ".DELAY_TIMERS")
		if slow {
			time.AfterFunc(5*time.Millisecond, func() { natstest.Forward(api, question, m) })
		}
		return slow
	})
	return cfg
}

// flood sets a timer count times with Delay-For 2s and Delay-Max-Wait 5s. An interval of zero is a burst. All sets but
// the first come half a millisecond early, so that no set comes at a due time.
func flood(c *harness.Client, subject string, count int, interval time.Duration) {
	c.T.Helper()
	if interval == 0 {
		c.PublishMany(subject, count, "Delay-For", "2s", "Delay-Max-Wait", "5s")
		return
	}
	start := time.Now()
	for i := range count {
		time.Sleep(time.Until(start.Add(time.Duration(i)*interval - time.Millisecond/2)))
		c.Publish(subject, fmt.Sprint(i), "Delay-For", "2s", "Delay-Max-Wait", "5s")
	}
}

// times returns the times of the arrivals after start.
func times(in *harness.Inbox, start time.Time) (all []time.Duration) {
	for _, a := range in.Arrivals() {
		all = append(all, a.At.Sub(start))
	}
	return all
}

// TestDebounceOfABurst: 3,000 sets that are stored at once are one run. The broker reads its start once.
func TestDebounceOfABurst(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		_, c := harness.Start(t, s, slowStore(t, s))
		in := c.Subscribe("orders.>")
		reads := c.Subscribe(natstest.ProxyAPI + ".STREAM.MSG.GET.DELAY_TIMERS")
		start := time.Now()
		flood(c, debounced, 3000, 0)
		time.Sleep(time.Second)
		n := 0
		for _, a := range reads.Arrivals() {
			n += strings.Count(a.Body, debounced)
		}
		if n > 2 {
			t.Errorf("%d reads for the start of one run, want at most two", n)
		}
		checkDebounced(t, c, in, start.Add(2*time.Second), 0, "2999")
	})
}

// TestDebounceOfAFlood: a timer that is set a thousand times a second is delivered when Delay-Max-Wait has passed, also
// through a restart of the broker. The next run begins with the next set.
func TestDebounceOfAFlood(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const ms = time.Millisecond
	for _, row := range []struct {
		name     string
		count    int
		interval time.Duration
		down     time.Duration // the broker crashes after eight seconds, for this time
		want     string
	}{
		{"a thousand a second", 12_000, ms, 0, "[5s 10.0005s 13.9985s]"},
		{"with a restart", 2_000, 10 * ms, 5 * time.Second, "[5s 13.035s 18.0395s 21.9895s]"},
	} {
		natstest.Subtest(t, row.name, func(t *testing.T, s *natstest.Server) {
			cfg := slowStore(t, s)
			b, c := harness.Start(t, s, cfg)
			in := c.Subscribe("orders.>")
			start, restarted := time.Now(), make(chan struct{})
			go func() {
				defer close(restarted)
				if row.down > 0 {
					time.Sleep(8 * time.Second)
					b.Crash()
					time.Sleep(row.down)
					harness.StartBroker(t, s, cfg)
				}
			}()
			flood(c, debounced, row.count, row.interval)
			<-restarted
			time.Sleep(10 * time.Second)
			if got := fmt.Sprint(times(in, start)); got != row.want {
				t.Errorf("deliveries after %s, want %s", got, row.want)
			}
			time.Sleep(3 * time.Minute)
			c.CheckNoTimers()
			c.CheckNoDead()
		})
	}
}

// TestDebounceWhileNoBrokerRuns: the sets that are stored while no broker runs are delivered within a second after the
// start, one for each key, and none of them remains.
func TestDebounceWhileNoBrokerRuns(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for _, row := range []struct{ keys, sets int }{{1, 100_000}, {1000, 20}} {
		natstest.Subtest(t, fmt.Sprint(row.keys, " keys"), func(t *testing.T, s *natstest.Server) {
			cfg := slowStore(t, s)
			b, c := harness.Start(t, s, cfg)
			in := c.Subscribe("orders.>")
			flood(c, "delaytimer.k0.orders.x", 2, 0)
			synctest.Wait()
			b.Crash()
			for i := range row.keys {
				flood(c, fmt.Sprintf("delaytimer.k%d.orders.x", i), row.sets, 0)
			}
			time.Sleep(time.Minute)
			harness.StartBroker(t, s, cfg)
			ready := time.Now()
			time.Sleep(time.Second)
			harness.CheckCount(t, in.Arrivals(), row.keys)
			for _, a := range in.Arrivals() {
				if a.Body != fmt.Sprint(row.sets-1) {
					t.Errorf("%q was delivered %s after the start, want the last set", a.Body, a.At.Sub(ready))
				}
			}
			time.Sleep(5 * time.Minute)
			harness.CheckCount(t, in.Arrivals(), row.keys)
			c.CheckNoTimers()
			c.CheckNoDead()
		})
	}
}

// TestDebounceDoesNotDisturbOthers: one tenant floods 32 keys. The rounds and the debounced timers of another tenant
// are on time.
func TestDebounceDoesNotDisturbOthers(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		_, c := harness.Start(t, s, slowStore(t, s))
		rounds, others := c.Subscribe("vic.s"), c.Subscribe("vic.d")
		start := time.Now()
		c.Publish("delaytimer.s.vic.s", "", "Delay-Every", "1s")
		time.Sleep(5*time.Second + time.Millisecond)
		for i := range 32 {
			flood(c, fmt.Sprintf("delaytimer.k%d.att.x", i), 1000, 0)
		}
		set := time.Now()
		for range 3 {
			c.Publish("delaytimer.d.vic.d", "", "Delay-For", "3s", "Delay-Max-Wait", "5s")
		}
		time.Sleep(10 * time.Second)
		for i, at := range times(rounds, start) {
			if want := time.Duration(i+1) * time.Second; at != want {
				t.Errorf("round %d was delivered after %s, want %s", i+1, at, want)
			}
		}
		harness.CheckCount(t, rounds.Arrivals(), 15)
		harness.CheckCount(t, others.Arrivals(), 1)
		if got := times(others, set); fmt.Sprint(got) != "[3s]" {
			t.Errorf("the other debounced timer was delivered after %s, want 3s", got)
		}
	})
}
