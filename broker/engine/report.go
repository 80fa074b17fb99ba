package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/stats"
)

// This file reports the state of a worker's loop, for Status.

// countEvery is the maximum age of the count of a lane's messages while the lane is not being read. A count costs one
// request to the leader of a lane that has 256 messages or more. A minute would be too old: after a publish of
// 10,000 messages an operator would see the 256 that were read.
const countEvery = 5 * time.Second

// report is called by the loop at the end of a pass.
func (w *worker) report(local time.Time) {
	f, r := w.flights, w.reading
	now, _ := w.clock.Now(local)
	report := stats.Report{
		Memory:  stats.Memory{Held: f.count, HeldBytes: f.bytes, Span: r.cursor.Span(), Full: w.full()},
		Waiting: f.waiting(), Newer: len(f.newer),
		Pending: uint64(f.count) + r.behind(), Read: r.last.Sequence, Bytes: r.seen.Bytes,
		MaxBytes: r.seen.MaxBytes, Offset: w.clock.Offset(now, local), Uncommitted: w.commits.waiting(&r.cursor, local),
	}
	w.plan.kind.report(w, &report)
	if resumes, later := w.resumes(); later && resumes.After(now) {
		report.Resumes = resumes
	}
	report.Next, _ = f.next()
	report.Oldest, _ = f.oldest()
	report.Looked, _ = w.clock.Looked()
	w.gauge.Set(report)
}

// count requests the number of the lane's messages when the last answer is old. While the lane is not being read, the
// number has no other source. count returns the time until the next request.
func (w *worker) count(local time.Time, every time.Duration) time.Duration {
	if left := w.clock.counted.Add(every).Sub(local); left > 0 {
		return left
	}
	w.clock.counted = local
	w.look()
	return every
}

// judge counts the deliveries that were early by the sample that a commit took of its stream.
func (w *worker) judge(s lane.Sample) {
	judged, wasEarly := w.early.Judge(w.clock.Base(), s)
	if judged {
		w.engine.Tally.Judged.Add(1)
	}
	if wasEarly {
		w.engine.Tally.Early.Add(1)
	}
}
