package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/stats"
)

// This file reports the state of a worker's loop for Engine.Lanes.

// countInterval is the interval at which the loop requests the number of a lane's messages while the lane is not being
// read. Reading only pauses in a lane with at least minHeld messages or minHeldBytes bytes, so a small lane causes no
// request. With an interval of a minute, an operator who has published 10,000 messages would see only the 256 messages
// that the lane has read, for up to a minute.
const countInterval = 5 * time.Second

// report updates the lane's gauge.
func (w *worker) report(local time.Time) {
	f, r := w.flights, w.reading
	now, _ := w.clock.Now(local)
	report := &w.lastReport // reused, because the interface call below would move a new report to the heap
	*report = stats.Report{
		Memory:          stats.Memory{Held: f.count, HeldBytes: f.bytes, Span: r.cursor.Span(), Full: w.full()},
		WaitingMessages: f.waiting(), NewerMessages: len(f.newerFormat),
		Pending: uint64(f.count) + r.pending(), Read: r.last.Sequence,
		Arrived: r.cursor.ArrivedThrough(), Bytes: r.sample.Bytes, MaxBytes: r.sample.MaxBytes,
		ClockOffset: w.clock.Offset(now, local), UncommittedSince: w.commits.uncommittedSince(&r.cursor, local),
	}
	w.plan.kind.report(w, report)
	if resumes, ok := w.resumeTime(); ok && resumes.After(now) {
		report.ResumesAt = resumes
	}
	report.NextDue, _ = f.nextTime()
	report.OldestDue, _ = f.oldestOverdue()
	report.ClockRead, _ = w.clock.LastAnswer()
	w.gauge.Set(*report)
}

// count requests the number of the lane's messages if the last request is older than interval. It returns the time
// until the next request.
func (w *worker) count(local time.Time, interval time.Duration) time.Duration {
	if wait := w.clock.countedAt.Add(interval).Sub(local); wait > 0 {
		return wait
	}
	w.clock.countedAt = local
	w.requestSample()
	return interval
}

// countEarly counts the samples that can show whether deliveries were early, and the samples that show an early one:
// see stats.EarlyCheck.
func (w *worker) countEarly(s lane.Sample) {
	judged, wasEarly := w.earlyCheck.Judge(w.clock.Base(), s)
	if judged {
		w.engine.Tally.EarlyChecks.Add(1)
	}
	if wasEarly {
		w.engine.Tally.EarlyReadings.Add(1)
	}
}
