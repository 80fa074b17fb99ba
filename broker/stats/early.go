package stats

import (
	"time"

	"delaybroker/broker/lane"
)

const (
	// A delivery counts as early if it was sent at least earlyBy before its due time. The promise is in milliseconds,
	// and clocks under correction run up to 500 ppm apart.
	earlyBy = time.Millisecond
	// judgeWithin is the maximum time between a delivery and the reading that judges it. In this time, clocks drift
	// apart by at most earlyBy.
	judgeWithin = 2 * time.Second
)

// Early checks deliveries afterwards. A delivery is sent when the leader's clock is proven to have reached the due
// time. But that proof is up to leader.Trust old, and the clock may have been set back since, or the proof may be
// wrong. So each clock reading of a commit is also compared with the deliveries before it. If the leader answers ts to
// a request sent at local time a, its clock showed at most ts − (a − s) at any earlier local time s:
//
//	due ──┐
//	  sent s ───────────── asked a ──── ts: the leader stamps its answer
//	        │◀── a − s ──▶│
//
// A delivery with due > ts − (a − s) was early. Of all deliveries between two readings, only the one with the largest
// due − s is kept. So Early counts readings, not deliveries. The count must stay zero.
type Early struct {
	maxLead time.Duration // maximum of due minus the local time of sending, since the last reading; both since base
	first   time.Time     // local; when the first delivery since the last reading was sent; zero if there is none
	asked   time.Time     // local; when the current reading began
	judged  time.Duration // maxLead at that time
	leader  string        // the leader at that time
}

// Sent records a delivery. Local has a monotonic reading.
func (e *Early) Sent(base, due, local time.Time) {
	lead := due.Sub(base.Round(0)) - local.Sub(base)
	if e.first.IsZero() || lead > e.maxLead {
		e.maxLead = lead
	}
	if e.first.IsZero() {
		e.first = local
	}
}

// Ask records the beginning of a reading.
func (e *Early) Ask(leader string, local time.Time) {
	e.asked = time.Time{}
	if !e.first.IsZero() && local.Sub(e.first) <= judgeWithin {
		e.asked, e.judged, e.leader = local, e.maxLead, leader
	}
	e.first = time.Time{}
}

// Judge reports whether the reading can judge the deliveries before it, and whether one of them was early.
func (e *Early) Judge(base time.Time, s lane.Sample) (told, wasEarly bool) {
	if e.asked.IsZero() || s.Leader != e.leader {
		return false, false
	}
	limit := s.ServerTime.Sub(base.Round(0)) - e.asked.Sub(base)
	return true, e.judged-limit >= earlyBy
}
