package stats

import (
	"time"

	"delaybroker/broker/lane"
)

const (
	// A delivery counts as early if it was sent at least minEarliness before its due time. The promise is in milliseconds,
	// and the rates of clocks under correction differ by up to 500 ppm.
	minEarliness = time.Millisecond
	// maxJudgeDelay is the maximum time between a delivery and the reading that judges the delivery. In this time, clocks
	// drift apart by at most minEarliness.
	maxJudgeDelay = 2 * time.Second
)

// EarlyCheck detects early deliveries. A delivery is sent when an answer of the stream's leader proves that the
// leader's clock has reached the due time. But that answer may be 100 ms old. The clock may have been set back since
// then, or the proof may be wrong. So before a commit, when the broker asks the leader for the state of the stream,
// EarlyCheck judges the deliveries before the question by the time in the leader's answer. Such an answer is called a
// reading of the clock. If the leader answers with the time ts to a request sent at local time a, the leader's clock
// showed at most ts − (a − s) at any earlier local time s:
//
//	due ──┐
//	  sent s ───────────── asked a ──── ts: the leader stamps its answer
//	        │◀── a − s ──▶│
//
// A delivery with due > ts − (a − s) was early. Of all deliveries between two readings, only the one with the largest
// due − s is kept. So the counts are of readings, and not of deliveries.
type EarlyCheck struct {
	maxLead      time.Duration // maximum of due − s since the last reading began; due and s are relative to base
	firstSent    time.Time     // local time of the first delivery since the last reading began; zero if there is none
	readingStart time.Time     // local time at which the last reading began; zero if the reading cannot judge
	judgedLead   time.Duration // maxLead at the beginning of the reading
	leader       string        // the leader at the beginning of the reading
}

// Observe records a delivery. Base and local are local times with a monotonic clock reading. Base is the same in all
// calls of an EarlyCheck, and local is the time of the delivery.
func (e *EarlyCheck) Observe(base, due, local time.Time) {
	lead := due.Sub(base.Round(0)) - local.Sub(base)
	if e.firstSent.IsZero() || lead > e.maxLead {
		e.maxLead = lead
	}
	if e.firstSent.IsZero() {
		e.firstSent = local
	}
}

// Begin records the beginning of a reading.
func (e *EarlyCheck) Begin(leader string, local time.Time) {
	e.readingStart = time.Time{}
	if !e.firstSent.IsZero() && local.Sub(e.firstSent) <= maxJudgeDelay {
		e.readingStart, e.judgedLead, e.leader = local, e.maxLead, leader
	}
	e.firstSent = time.Time{}
}

// Judge reports whether the reading can judge the deliveries before it, and whether one of them was early.
func (e *EarlyCheck) Judge(base time.Time, s lane.Sample) (judged, wasEarly bool) {
	if e.readingStart.IsZero() || s.Leader != e.leader {
		return false, false
	}
	limit := s.ServerTime.Sub(base.Round(0)) - e.readingStart.Sub(base)
	return true, e.judgedLead-limit >= minEarliness
}
