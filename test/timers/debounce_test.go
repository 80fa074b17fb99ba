package timers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

const debounced = "delaytimer.k.orders.x"

// debounce sets the timer at these times after start, and returns the last generation.
func debounce(
	c *harness.Client, start time.Time, wait, most string, times ...time.Duration,
) (generation uint64) {
	c.T.Helper()
	for _, after := range times {
		time.Sleep(time.Until(start.Add(after)))
		generation = c.Publish(debounced, after.String(), "Delay-For", wait, "Delay-Max-Wait", most).Sequence
	}
	return generation
}

// checkDebounced expects count messages one nanosecond before due, one more message with this body at due, and no entry
// three minutes later.
func checkDebounced(t *testing.T, c *harness.Client, in *harness.Inbox, due time.Time, count int, body string) {
	t.Helper()
	harness.CheckExactly(t, in, due, count)
	if all := in.Arrivals(); len(all) != count+1 || all[count].Body != body {
		t.Errorf("%q arrived, want %s as the last body", harness.Bodies(all), body)
	}
	time.Sleep(3 * time.Minute)
	c.CheckNoTimers()
	c.CheckNoDead()
}

// TestDebounce: each set of a run postpones the timer, at most until Delay-Max-Wait after the first set.
func TestDebounce(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, row := range []struct {
		name, wait, most string
		sets             []time.Duration
		due              time.Duration
	}{
		{"quiet at once", "10s", "25s", []time.Duration{0}, 10 * s},
		{"quiet in time", "10s", "25s", []time.Duration{0, 8 * s}, 18 * s},
		{"at most", "10s", "25s", []time.Duration{0, 8 * s, 16 * s, 24 * s}, 25 * s},
		{"the maximum wait is as long as the delay", "10s", "10s", []time.Duration{0, 5 * s, 9 * s}, 10 * s},
		{"armed", "3m", "5m", []time.Duration{0, 60 * s, 120 * s, 180 * s, 290 * s}, 300 * s},
		{"armed far ahead", "2h", "3h", []time.Duration{0, 3600 * s, 7200 * s}, 10800 * s},
	} {
		natstest.Subtest(t, row.name, func(t *testing.T, s *natstest.Server) {
			c := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
			in := c.Subscribe("orders.>")
			for i := range 2 { // the entries of a run do not count for the next run
				start := time.Now()
				debounce(c, start, row.wait, row.most, row.sets...)
				checkDebounced(t, c, in, start.Add(row.due), i, row.sets[len(row.sets)-1].String())
			}
		})
	}
}

// ends has the events that end a run.
var ends = map[string]func(c *harness.Client, last uint64){
	"cancel": func(c *harness.Client, last uint64) { c.PublishIf(last, debounced, "", "Delay-Cancel", "x") },
	"any":    func(c *harness.Client, _ uint64) { c.Publish(debounced, "", "Delay-Cancel", "x") },
	"set":    func(c *harness.Client, _ uint64) { c.Publish(debounced, "other", "Delay-For", "1h") },
	"sets": func(c *harness.Client, _ uint64) {
		for range 5 {
			c.Publish(debounced, "other", "Delay-For", "1h")
			synctest.Wait()
		}
	},
	"move":   func(c *harness.Client, last uint64) { c.PublishIf(last, debounced, "other", "Delay-For", "1h") },
	"bad":    func(c *harness.Client, _ uint64) { c.Publish(debounced, "bad", "Delay-For", "never") },
	"series": func(c *harness.Client, _ uint64) { c.Publish(debounced, "other", "Delay-Every", "1h") },
}

// TestDebounceBeginsAnew: after any end of a run, and a crash of the broker at any time, the next run is separate. Its
// timer is neither early nor late.
func TestDebounceBeginsAnew(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, end := range ends {
		for _, crash := range []time.Duration{-1, 10 * s, 22 * s, 30 * s, 60 * s} {
			for _, down := range []time.Duration{0, 15 * s} {
				if crash < 0 && down > 0 {
					continue
				}
				natstest.Subtest(t, fmt.Sprint(name, " crash ", crash, " for ", down), func(t *testing.T, s *natstest.Server) {
					checkNextRun(t, s, end, crash, down)
				})
			}
		}
	}
}

// checkNextRun ends a run after 22 s, and begins the next run 8 s later, before the broker stores a marker for the
// entry that ended the first run. The broker crashes at the time crash, unless it is negative, and another broker
// starts after the time down.
func checkNextRun(t *testing.T, s *natstest.Server, end func(*harness.Client, uint64), crash, down time.Duration) {
	cfg := harness.TimerConfig(t)
	b, c := harness.Start(t, s, cfg)
	in := c.Subscribe("orders.>")
	start := time.Now()
	crashed := make(chan struct{})
	go func() {
		defer close(crashed)
		if crash >= 0 {
			time.Sleep(crash + time.Millisecond)
			b.Crash()
			time.Sleep(down)
			harness.StartBroker(t, s, cfg)
		}
	}()
	last := debounce(c, start, "1m", "70s", 0, 10*time.Second)
	time.Sleep(time.Until(start.Add(22 * time.Second)))
	end(c, last)
	debounce(c, start, "1m", "70s", 30*time.Second, 50*time.Second, 90*time.Second)
	harness.CheckExactly(t, in, start.Add(100*time.Second), 0)
	<-crashed
	time.Sleep(3 * time.Minute)
	harness.CheckBodies(t, in.Arrivals(), "1m30s")
	if got := harness.Pending(c, "DELAY_TIMERS"); got != 1 {
		t.Errorf("%d entries are stored, want the cursor", got)
	}
}

// TestDebounceThroughCrashes: a run continues through crashes and changes of the owner.
func TestDebounceThroughCrashes(t *testing.T) {
	t.Parallel()
	for crash := range 12 {
		for _, shared := range []bool{false, true} {
			natstest.Subtest(t, fmt.Sprint(crash, shared), func(t *testing.T, s *natstest.Server) {
				cfg := harness.TimerConfig(t)
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				start, crashed := time.Now(), make(chan struct{})
				b := startOneOrTwo(t, s, cfg, shared)
				time.Sleep(time.Until(start.Add(20 * time.Second)))
				start = time.Now()
				go func() {
					defer close(crashed)
					time.Sleep(time.Duration(crash)*10*time.Second + time.Millisecond)
					b.Crash()
					if !shared {
						harness.StartBroker(t, s, cfg)
					}
				}()
				debounce(c, start, "50s", "140s", 0, 5*time.Second, 45*time.Second, 75*time.Second, 110*time.Second,
					112*time.Second)
				<-crashed
				checkDebounced(t, c, in, start.Add(140*time.Second), 0, "1m52s")
			})
		}
	}
}

// startOneOrTwo starts one broker, or two brokers, of which one stands by. It returns the broker that will crash.
func startOneOrTwo(t *testing.T, s *natstest.Server, cfg broker.Config, two bool) *harness.Instance {
	if two {
		return harness.StartBrokers(t, s, 2, cfg)[0]
	}
	return harness.StartBroker(t, s, cfg)
}

// TestDebounceAfterItsFiring: the firing of the timer ends the run. A set one nanosecond later begins the next run.
func TestDebounceAfterItsFiring(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		ms := time.Millisecond
		debounce(c, start, "1s", "2s", 0, 900*ms, 1800*ms)
		harness.CheckExactly(t, in, start.Add(2*time.Second), 0)
		debounce(c, start, "1s", "2s", 2000*ms+1, 2900*ms, 3800*ms)
		checkDebounced(t, c, in, start.Add(4*time.Second+1), 1, "3.8s")
	})
}

// TestOperationsOfDebounce: a timer that is set a hundred times a second costs the set and a delete for each, and
// nothing else before it is due. When the timer is due, the broker reads its run, and removes the remaining entries.
func TestOperationsOfDebounce(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		c.Publish("delaytimer.first.orders.x", "body", "Delay-For", "1s")
		time.Sleep(5 * time.Minute)
		o := countOperations(c)
		start := time.Now()
		for i := range 6000 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * 10 * time.Millisecond)))
			c.Publish(debounced, "body", "Delay-For", "5s", "Delay-Max-Wait", "1m")
		}
		time.Sleep(10 * time.Second)
		o.check(t, "a minute", "5 reads, 0 copies in 0 requests, 6001 deletes, 6002 entries, 0 markers, 1 deliveries")
	})
}
