package leader

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// TestClockIsALowerBound: for any offset and drift of the server's clock, and any travel time of the answers, the
// estimate is ahead of the server's clock by at most the drift since the last answer, and behind it by at most the
// travel time of that answer.
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
			var mono, travelTime time.Duration
			seq := uint64(0)
			for range 5000 {
				mono += time.Duration(rng.Int64N(int64(Trust)))
				switch rng.IntN(4) {
				case 0:
					travelTime = time.Duration(rng.ExpFloat64() * float64(3*time.Millisecond))
					c.Record(Reading{Time: server(mono), Received: base.Add(mono + travelTime), LastSeq: seq})
					mono += travelTime
				case 1: // a message, read immediately or long after
					seq++
					stored := mono
					if rng.IntN(2) == 0 {
						stored -= time.Duration(rng.Int64N(int64(mono) + 1))
					}
					c.Observe(seq, At(server(stored)), base.Add(mono))
				}
				now, proven := c.Now(base.Add(mono))
				ahead := now.Sub(At(server(mono)))
				if !proven {
					continue
				}
				if ahead > drift {
					t.Fatalf("%s ahead of the server at a drift of %v ppm, want at most %s", ahead, ppm, drift)
				}
				if lag, limit := -ahead, travelTime+freshness+2*drift; lag > limit {
					t.Fatalf("%s behind the server, want at most %s", lag, limit)
				}
			}
		})
	}
}

func answerAt(base time.Time, after, ahead time.Duration, leader string) Reading {
	return Reading{Time: base.Round(0).Add(after + ahead), Received: base.Add(after), Leader: leader}
}

func checkClock(t *testing.T, c *Clock, base time.Time, after, ahead time.Duration, proven bool) {
	t.Helper()
	now, ok := c.Now(base.Add(after))
	if want := base.Round(0).Add(after + ahead); !now.stamp.Equal(want) || ok != proven {
		got := now.stamp.Sub(base.Round(0).Add(after))
		t.Errorf("%s after the start: the estimate is %s ahead of the local clock, proven %v; want %s, %v",
			after, got, ok, ahead, proven)
	}
}

// TestProofLifetime: an answer is a proof for a tenth of a second, to the nanosecond. A message before the first answer
// is no proof.
func TestProofLifetime(t *testing.T) {
	base := time.Now()
	c := NewClock(base)
	checkClock(t, c, base, 0, 0, false)
	c.Observe(1, At(base.Round(0).Add(time.Hour)), base)
	checkClock(t, c, base, 0, 0, false)
	c.Record(answerAt(base, 0, time.Second, ""))
	checkClock(t, c, base, Trust, time.Second, true)
	checkClock(t, c, base, Trust+1, time.Second, false)
	c.Observe(1, At(base.Round(0).Add(2*time.Second)), base.Add(time.Second)) // stored just now
	checkClock(t, c, base, time.Second+Trust, time.Second, true)
	checkClock(t, c, base, time.Second+Trust+1, time.Second, false)
	if got, want := c.Age(base.Add(3*time.Second)), 2*time.Second; got != want {
		t.Errorf("age %s, want %s", got, want)
	}
}

// TestClockTakesTheBest: the clock uses the largest bound of the last tenth of a second, and no older bound.
func TestClockTakesTheBest(t *testing.T) {
	const ms = time.Millisecond
	base := time.Now()
	c := NewClock(base)
	c.Record(answerAt(base, 0, -ms, "")) // a fast answer, and then slow ones
	for _, at := range []time.Duration{20 * ms, 40 * ms, 60 * ms, 80 * ms, 100 * ms} {
		c.Record(answerAt(base, at, -30*ms, ""))
		checkClock(t, c, base, at, -ms, true)
	}
	checkClock(t, c, base, 100*ms+1, -30*ms, true)
	c.Record(answerAt(base, 110*ms, -2*ms, ""))
	checkClock(t, c, base, 110*ms, -2*ms, true)
}

// TestOldMessagesProveNothing: a message that was stored some time ago is no proof.
func TestOldMessagesProveNothing(t *testing.T) {
	base := time.Now()
	for age, want := range map[time.Duration]bool{0: true, freshness - 1: true, freshness: false, time.Hour: false} {
		c := NewClock(base)
		c.Record(answerAt(base, 0, 0, ""))
		c.Observe(1, At(base.Round(0).Add(time.Second-age)), base.Add(time.Second))
		if _, got := c.Now(base.Add(time.Second)); got != want {
			t.Errorf("a message of %s ago: proven %v, want %v", age, got, want)
		}
	}
}

// TestClockOfAnotherLeader: a new leader's answer discards the answers and timestamps of the old leader.
func TestClockOfAnotherLeader(t *testing.T) {
	const ms = time.Millisecond
	base := time.Now()
	c := NewClock(base)
	c.Record(answerAt(base, 0, 5*time.Second, "fast"))
	s := answerAt(base, 10*ms, 0, "slow")
	s.LastSeq = 10
	c.Record(s)
	checkClock(t, c, base, 10*ms, 0, true)
	c.Observe(10, At(base.Round(0).Add(5*time.Second)), base.Add(10*ms)) // stamped by the old leader
	checkClock(t, c, base, 10*ms, 0, true)
	c.Observe(11, At(base.Round(0).Add(11*ms)), base.Add(10*ms)) // stored after the last answer
	checkClock(t, c, base, 10*ms, ms, true)
}

// TestClockAfterCorrection: the clock ignores messages that the leader stamped before its clock was set back by an
// hour.
func TestClockAfterCorrection(t *testing.T) {
	base := time.Now()
	c := NewClock(base)
	s := answerAt(base, 0, 0, "")
	s.LastSeq = 3
	c.Record(s)
	c.Observe(1, At(base.Round(0).Add(time.Hour)), base)
	c.Observe(3, At(base.Round(0).Add(time.Hour)), base)
	checkClock(t, c, base, 0, 0, true)
}

// TestClockAfterSteps: the local wall clock is stepped, or jumps while the monotonic clock stops. Clock uses only the
// monotonic clock.
func TestClockAfterSteps(t *testing.T) {
	for _, step := range []time.Duration{0, 1, -1, time.Hour, -time.Hour} {
		base := time.Now()
		c := NewClock(base)
		c.Record(answerAt(base, 0, 0, ""))
		now, proven := c.Now(stepped(base.Add(Trust), step))
		if want := base.Round(0).Add(Trust); !now.stamp.Equal(want) || !proven {
			t.Errorf("after a step of %s: %s ahead of the monotonic clock, proven %v; want 0s, true",
				step, now.stamp.Sub(want), proven)
		}
	}
}

// stepped returns t with only its wall clock reading changed by step. No exported function does that.
func stepped(t time.Time, step time.Duration) time.Time {
	t = t.Add(step)
	(*struct {
		wall uint64
		mono int64
		loc  *time.Location
	})(unsafe.Pointer(&t)).mono -= int64(step)
	return t
}
