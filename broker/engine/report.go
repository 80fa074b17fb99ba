package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/stats"
)

// This file reports the state of a worker's loop for Engine.Lanes.

// countEvery is the maximum age of the count of a lane's messages while the lane is not being read. A count costs one
// request to the leader, and only for a lane with at least minHeld messages. With a maximum age of a minute, an
// operator who has published 10,000 messages would for a minute see only the 256 messages that the lane has read.
const countEvery = 5 * time.Second

// report updates the report. The loop calls it at the end of a pass.
func (w *worker) report(local time.Time) {
	f, r := w.flights, w.reading
	now, _ := w.clock.Now(local)
	report := stats.Report{
		Memory:  stats.Memory{Held: f.count, HeldBytes: f.bytes, Span: r.cursor.Span(), Full: w.full()},
		Waiting: f.waiting(), Newer: len(f.newer),
		Pending: uint64(f.count) + r.behind(), Read: r.last.Sequence, Bytes: r.seen.Bytes,
		MaxBytes: r.seen.MaxBytes, ClockOffset: w.clock.Offset(now, local),
		UncommittedSince: w.commits.waiting(&r.cursor, local),
	}
	w.plan.kind.report(w, &report)
	if resumes, later := w.resumes(); later && resumes.After(now) {
		report.ResumesAt = resumes
	}
	report.NextDue, _ = f.next()
	report.OldestDue, _ = f.oldest()
	report.ClockRead, _ = w.clock.Looked()
	w.gauge.Set(report)
}

// count requests the number of the lane's messages if the last request is older than every. While the lane is not being
// read, the number has no other source. count returns the time until the next request.
func (w *worker) count(local time.Time, every time.Duration) time.Duration {
	if left := w.clock.counted.Add(every).Sub(local); left > 0 {
		return left
	}
	w.clock.counted = local
	w.look()
	return every
}

// countEarly counts the deliveries that an answer of the stream's leader proves to have been early.
func (w *worker) countEarly(s lane.Sample) {
	judged, wasEarly := w.early.Judge(w.clock.Base(), s)
	if judged {
		w.engine.Tally.EarlyChecks.Add(1)
	}
	if wasEarly {
		w.engine.Tally.Early.Add(1)
	}
}
