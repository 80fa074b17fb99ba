package leader

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// TestClockIsALowerBound: a server's clock with any offset and drift, and answers of any speed. The estimate is ahead
// of the server's clock by at most the drift since the last answer, and behind it by at most the travel time of that
// answer.
func TestClockIsALowerBound(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			base := time.Now()
			c := NewClock(base)
			offset := time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour
			ppm := float64(rng.IntN(101) - 50)
			if seed%3 == 0 {
				ppm = 0
			}
			server := func(mono time.Duration) time.Time {
				return base.Round(0).Add(mono + offset + time.Duration(float64(mono)*ppm/1e6))
			}
			drift := time.Duration(max(ppm, -ppm)/1e6*float64(Trust)) + 2
			var mono, back time.Duration
			seq := uint64(0)
			for range 5000 {
				mono += time.Duration(rng.Int64N(int64(Trust)))
				switch rng.IntN(4) {
				case 0:
					back = time.Duration(rng.ExpFloat64() * float64(3*time.Millisecond))
					c.Record(Answer{Time: server(mono), Received: base.Add(mono + back), LastSeq: seq})
					mono += back
				case 1: // a message, read immediately or long after
					seq++
					stored := mono
					if rng.IntN(2) == 0 {
						stored -= time.Duration(rng.Int64N(int64(mono) + 1))
					}
					c.Observe(seq, At(server(stored)), base.Add(mono))
				}
				now, fresh := c.Now(base.Add(mono))
				ahead := now.Sub(At(server(mono)))
				if !fresh {
					continue
				}
				if ahead > drift {
					t.Fatalf("%s ahead of the server at a drift of %v ppm, want at most %s", ahead, ppm, drift)
				}
				if behind := -ahead; behind > back+freshness+2*drift {
					t.Fatalf("%s behind the server, want at most %s", behind, back+freshness+2*drift)
				}
			}
		})
	}
}

func look(base time.Time, after, ahead time.Duration, leader string) Answer {
	return Answer{Time: base.Round(0).Add(after + ahead), Received: base.Add(after), Leader: leader}
}

func checkClock(t *testing.T, c *Clock, base time.Time, after, ahead time.Duration, fresh bool) {
	t.Helper()
	now, ok := c.Now(base.Add(after))
	if want := base.Round(0).Add(after + ahead); !now.stamp.Equal(want) || ok != fresh {
		got := now.stamp.Sub(base.Round(0).Add(after))
		t.Errorf("%s after the start it is %s ahead of ours, fresh %v; want %s, %v", after, got, ok, ahead, fresh)
	}
}

// TestClockFreshness: an answer keeps the clock fresh for a tenth of a second, to the nanosecond. A message without an
// answer before it does not.
func TestClockFreshness(t *testing.T) {
	base := time.Now()
	c := NewClock(base)
	checkClock(t, c, base, 0, 0, false)
	c.Observe(1, At(base.Round(0).Add(time.Hour)), base)
	checkClock(t, c, base, 0, 0, false)
	c.Record(look(base, 0, time.Second, ""))
	checkClock(t, c, base, Trust, time.Second, true)
	checkClock(t, c, base, Trust+1, time.Second, false)
	c.Observe(1, At(base.Round(0).Add(2*time.Second)), base.Add(time.Second)) // stored just now
	checkClock(t, c, base, time.Second+Trust, time.Second, true)
	checkClock(t, c, base, time.Second+Trust+1, time.Second, false)
	if got, want := c.Age(base.Add(3*time.Second)), 2*time.Second; got != want {
		t.Errorf("age %s, want %s", got, want)
	}
}

// TestClockTakesTheBest: the clock uses the best proof of the last tenth of a second, and no older one.
func TestClockTakesTheBest(t *testing.T) {
	const ms = time.Millisecond
	base := time.Now()
	c := NewClock(base)
	c.Record(look(base, 0, -ms, "")) // a fast answer, and then slow ones
	for _, at := range []time.Duration{20 * ms, 40 * ms, 60 * ms, 80 * ms, 100 * ms} {
		c.Record(look(base, at, -30*ms, ""))
		checkClock(t, c, base, at, -ms, true)
	}
	checkClock(t, c, base, 100*ms+1, -30*ms, true)
	c.Record(look(base, 110*ms, -2*ms, ""))
	checkClock(t, c, base, 110*ms, -2*ms, true)
}

// TestClockOfOldMessages: a message that was stored some time ago proves nothing useful, and does not make the clock
// fresh.
func TestClockOfOldMessages(t *testing.T) {
	base := time.Now()
	for behind, fresh := range map[time.Duration]bool{0: true, freshness - 1: true, freshness: false, time.Hour: false} {
		c := NewClock(base)
		c.Record(look(base, 0, 0, ""))
		c.Observe(1, At(base.Round(0).Add(time.Second-behind)), base.Add(time.Second))
		if _, got := c.Now(base.Add(time.Second)); got != fresh {
			t.Errorf("a message of %s ago: fresh %v, want %v", behind, got, fresh)
		}
	}
}

// TestClockOfAnotherLeader: a new leader's answer discards the answers and stamps of the old leader's clock.
func TestClockOfAnotherLeader(t *testing.T) {
	const ms = time.Millisecond
	base := time.Now()
	c := NewClock(base)
	c.Record(look(base, 0, 5*time.Second, "fast"))
	s := look(base, 10*ms, 0, "slow")
	s.LastSeq = 10
	c.Record(s)
	checkClock(t, c, base, 10*ms, 0, true)
	c.Observe(10, At(base.Round(0).Add(5*time.Second)), base.Add(10*ms)) // stamped by the fast one, read only now
	checkClock(t, c, base, 10*ms, 0, true)
	c.Observe(11, At(base.Round(0).Add(11*ms)), base.Add(10*ms)) // stored after the last answer
	checkClock(t, c, base, 10*ms, ms, true)
}

// TestClockThatWasPutRight: the clock ignores messages that the leader stamped before its clock was set back by an
// hour.
func TestClockThatWasPutRight(t *testing.T) {
	base := time.Now()
	c := NewClock(base)
	s := look(base, 0, 0, "")
	s.LastSeq = 3
	c.Record(s)
	c.Observe(1, At(base.Round(0).Add(time.Hour)), base)
	c.Observe(3, At(base.Round(0).Add(time.Hour)), base)
	checkClock(t, c, base, 0, 0, true)
}

// TestClockAfterSteps: our wall clock is stepped, or jumps while the monotonic clock stops. Clock uses only the
// monotonic one.
func TestClockAfterSteps(t *testing.T) {
	for _, step := range []time.Duration{0, 1, -1, time.Hour, -time.Hour} {
		base := time.Now()
		c := NewClock(base)
		c.Record(look(base, 0, 0, ""))
		now, fresh := c.Now(stepped(base.Add(Trust), step))
		if want := base.Round(0).Add(Trust); !now.stamp.Equal(want) || !fresh {
			t.Errorf("after a step of %s it is %s later than by the monotonic clock, fresh %v", step, now.stamp.Sub(want), fresh)
		}
	}
}

// stepped returns t as if the wall clock had been stepped. No exported function changes only one of the two readings.
func stepped(t time.Time, by time.Duration) time.Time {
	t = t.Add(by)
	(*struct {
		wall uint64
		mono int64
		loc  *time.Location
	})(unsafe.Pointer(&t)).mono -= int64(by)
	return t
}
