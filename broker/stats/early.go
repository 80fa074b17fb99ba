package stats

import (
	"time"

	"delaybroker/broker/lane"
)

const (
	// earlyBy is how long before its due time a delivery must have been sent to count as early. The promise is given in
	// milliseconds, and clocks that are being corrected run up to 500 ppm apart.
	earlyBy = time.Millisecond
	// judgeWithin is how long after it was sent a delivery can be judged: in this time, clocks come apart by no more than
	// earlyBy.
	judgeWithin = 2 * time.Second
)

// Early checks deliveries afterwards. A delivery is sent when the leader's clock is proven to have reached its due
// time; but that proof is up to leader.Trust old, and the clock may have been put back since, or the proof be wrong. So
// each look of a commit is also compared with the deliveries before it. When the leader answers ts to a question asked
// at local time a, its clock showed at most ts − (a − s) at any earlier local time s:
//
//	due ──┐
//	  sent s ───────────── asked a ──── ts: the leader stamps its answer
//	        │◀── a − s ──▶│
//
// A delivery with due > ts − (a − s) was early. Of all deliveries between two looks only the boldest is kept, which has
// the largest due − s. So looks are counted, not deliveries: the count must stay zero either way.
type Early struct {
	boldest time.Duration // due less the local time of sending, both since base; the largest since the last look
	first   time.Time     // local; when the first delivery since the last look was sent; zero when there is none
	asked   time.Time     // local; of the look underway
	judging time.Duration // boldest, when it was asked
	leader  string        // when it was asked
}

// Sent notes a delivery. Local has a monotonic reading.
func (e *Early) Sent(base, due, local time.Time) {
	bold := due.Sub(base.Round(0)) - local.Sub(base)
	if e.first.IsZero() || bold > e.boldest {
		e.boldest = bold
	}
	if e.first.IsZero() {
		e.first = local
	}
}

// Ask notes that a look begins.
func (e *Early) Ask(leader string, local time.Time) {
	e.asked = time.Time{}
	if !e.first.IsZero() && local.Sub(e.first) <= judgeWithin {
		e.asked, e.judging, e.leader = local, e.boldest, leader
	}
	e.first = time.Time{}
}

// Judge reports whether the look tells anything about the deliveries before it, and whether one of them was early.
func (e *Early) Judge(base time.Time, s lane.Sample) (told, wasEarly bool) {
	if e.asked.IsZero() || s.Leader != e.leader {
		return false, false
	}
	most := s.ServerTime.Sub(base.Round(0)) - e.asked.Sub(base)
	return true, e.judging-most >= earlyBy
}
