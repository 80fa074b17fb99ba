package stats

import (
	"testing"
	"time"

	"delaybroker/broker/lane"
)

// TestEarly: a delivery is early if it was sent before the leader's clock reached the due time. A later sample can
// prove that a delivery was early.
func TestEarly(t *testing.T) {
	base := time.Now()
	const offset = time.Hour // the leader's clock minus the local clock
	at := func(d time.Duration) time.Time { return base.Add(d) }
	leader := func(d time.Duration) time.Time { return base.Round(0).Add(offset + d) }
	const ms = time.Millisecond
	for _, test := range []struct {
		name            string
		due             time.Duration // due time of the delivery sent at 10 ms, by the leader's clock
		asked, answered time.Duration // the beginning of the reading, and the timestamp of the leader's answer
		leader          string
		judged, early   bool
	}{
		{"in time", 10 * ms, 50 * ms, 50 * ms, "a", true, false},
		{"late", -time.Hour, 50 * ms, 50 * ms, "a", true, false},
		{"less than minEarliness", 11*ms - 1, 50 * ms, 50 * ms, "a", true, false},
		{"early", 11 * ms, 50 * ms, 50 * ms, "a", true, true},
		{"perhaps early: the answer was slow", 20 * ms, 50 * ms, 60 * ms, "a", true, false},
		{"the clock was set back", 10 * ms, 50 * ms, 30 * ms, "a", true, true},
		{"another leader", 10 * ms, 50 * ms, 30 * ms, "b", false, false},
		{"a reading after maxJudgeDelay", time.Hour, 2011 * ms, 2011 * ms, "a", false, false},
	} {
		var e EarlyCheck
		e.Observe(base, leader(-time.Minute), at(5*time.Millisecond)) // an earlier delivery with a smaller lead
		e.Observe(base, leader(test.due), at(10*time.Millisecond))
		e.Observe(base, leader(-time.Minute), at(15*time.Millisecond)) // a later delivery with a smaller lead
		e.Begin("a", at(test.asked))
		e.Observe(base, leader(time.Hour), at(test.asked+time.Millisecond)) // judged by the next reading
		judged, wasEarly := e.Judge(base, lane.Sample{ServerTime: leader(test.answered), Leader: test.leader})
		if judged != test.judged || wasEarly != test.early {
			t.Errorf("%s: judged %v, early %v; want %v, %v", test.name, judged, wasEarly, test.judged, test.early)
		}
		if e.Begin("a", at(test.asked+2*time.Millisecond)); test.name == "in time" {
			second := lane.Sample{ServerTime: leader(test.asked + 2*ms), Leader: "a"}
			if _, wasEarly := e.Judge(base, second); !wasEarly {
				t.Error("the second reading does not judge a delivery that was sent during the first")
			}
		}
	}
	var idle EarlyCheck
	if idle.Begin("a", at(0)); idle.readingStart != (time.Time{}) {
		t.Error("a reading without an earlier delivery can judge")
	}
}

func TestHistogram(t *testing.T) {
	var h Latencies
	for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, time.Hour, time.Hour + 1} {
		h.Observe(d)
	}
	got := h.Read()
	if got.Count != 5 || got.Sum != 2*time.Hour+2*time.Millisecond+2 {
		t.Errorf("%d observations with the sum %s, want 5 with the sum 2h0m0.002000002s", got.Count, got.Sum)
	}
	for _, b := range got.Buckets {
		want := uint64(3)
		switch b.Bound {
		case time.Millisecond:
			want = 2
		case time.Hour:
			want = 4
		}
		if b.Count != want {
			t.Errorf("up to %s: %d, want %d", b.Bound, b.Count, want)
		}
	}
}
