package engine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
)

const (
	// timersCountInterval is the interval at which the timers' lane requests the number of its entries, if it has any.
	timersCountInterval = time.Minute

	// The timers' lane yields while at least burstFirings firings are in progress in this process.
	burstFirings = 4096
	// maxYield is the maximum time for which the lane yields in one burst. A timer that a client sets during a burst may
	// be late by up to maxYield, because its entry is read late.
	maxYield = 500 * time.Millisecond
	// yieldPoll is the interval at which a lane that yields checks whether the burst is over.
	yieldPoll = 10 * time.Millisecond
)

// timersLane is the lane of named timers. Except for the cursor, each message of the lane is an entry of a timer. The
// last entry of a subject is the timer's state.
type timersLane struct {
	plainLane
	stream      *role.Stream
	cursor      string    // the subject of the lane's cursor
	activeSince time.Time // local; when this instance began to work the lane

	yield    yield
	unopened int // number of entries, sealed with an unknown key, that the latest sweep pass has found
}

func newTimersLane(s *role.Stream, cursor string) *timersLane {
	return &timersLane{stream: s, cursor: cursor, activeSince: time.Now()}
}

func (l *timersLane) source() source {
	return source{cursor: l.cursor, share: freeShare}
}

// parse parses an entry of the timers' stream. If the entry replaces a set in memory, parse calls supersede.
func (l *timersLane) parse(w *worker, f *flight, in message.Incoming) {
	t := w.timers
	previous := t.lastSets[f.Subject]
	var alarm *role.Alarm
	if previous != nil && previous.Sequence < f.Sequence {
		alarm = previous.timer
	}
	read := t.lane.Read(in, f.Size-len(f.Subject), alarm, l.storedWhileActive(w, leader.At(in.At)))
	f.request, f.problem, f.timer = read.Request, read.Problem, read.Alarm
	if read.Replaces && w.supersede(previous) && read.Kind == entry.Cancel {
		f.timer.PreviousRemoved()
	}
	if read.Kind == entry.Set {
		t.lastSets[f.Subject] = f
	}
}

// storedWhileActive reports whether an entry was stored while this instance was active. While the leader's clock is
// unknown, storedWhileActive returns false: this instance has not fired a timer yet.
func (l *timersLane) storedWhileActive(w *worker, stored leader.Time) bool {
	since, _ := w.clock.Now(l.activeSince)
	return w.clock.HasAnswer() && !stored.Before(since)
}

func (l *timersLane) deadline(_ plan, f *flight) (at leader.Time, retry bool) {
	return f.nextAttempt(), false
}

func (l *timersLane) holdsTimers() bool { return true }

func (l *timersLane) yields(local time.Time) bool { return l.yield.active(l.stream.Firings(), local) }

// commit stores the cursor. It purges nothing: entries stay in the stream after they have been read.
func (l *timersLane) commit(ctx context.Context, _ *committer, todo commit) error {
	return l.stream.StoreCursor(ctx, timer.Cursor{Next: todo.upTo + 1, Created: todo.history.Created})
}

// report counts all entries as pending, because they stay after they have been read. One message of the stream, the
// cursor, does not count.
func (l *timersLane) report(w *worker, r *stats.Report) {
	r.Pending = max(r.Pending, max(w.reading.sample.Messages, 1)-1)
	r.UnopenedEntries = l.unopened
}

// poll requests the number of entries if that is due, and begins a sweep pass if that is due.
func (l *timersLane) poll(w *worker, m moment) (wait time.Duration) {
	if w.reading.sample.Messages > 1 {
		wait = w.count(m.local, timersCountInterval)
	} else {
		wait = l.plainLane.poll(w, m)
	}
	return min(wait, l.sweepIfDue(w, m))
}

// sweepIfDue begins a sweep pass through the timers' stream if a pass is due. It returns the time until the next pass.
func (l *timersLane) sweepIfDue(w *worker, m moment) time.Duration {
	if !w.clock.HasAnswer() || !w.reading.live() {
		return forever
	}
	wait, ok := w.timers.lane.Sweep.Wait(m.now, m.local, w.reading.sample.Messages == 0 && w.reading.last.Sequence == 0)
	switch {
	case !ok:
		return forever
	case wait > 0:
		return wait
	}
	cutoff := w.timers.lane.Sweep.Begin(m.now)
	w.wg.Go(func() {
		end := w.timers.lane.Pass(w.loopCtx, cutoff, func(b *role.Batch) { w.mail.Put(overdueFound{b}) })
		w.mail.Put(passEnded{l, end})
	})
	return forever
}

type (
	passEnded struct { // the event that a sweep pass has ended
		lane *timersLane
		end  role.Pass
	}
	overdueFound struct{ batch *role.Batch } // the event that a sweep pass has found overdue timers
)

func (e passEnded) handle(w *worker, m moment) {
	if err := e.end.Err; err != nil {
		w.limitedLog.Log(slog.LevelWarn, "cannot look for overdue timers, will retry", "err", err)
	}
	w.timers.lane.Sweep.End(e.end, m.local)
	e.lane.logSeals(w, e.end)
}

func (e overdueFound) handle(w *worker, m moment) {
	for _, found := range e.batch.Timers {
		a := found.Alarm
		if set := w.timers.lastSets[a.Subject]; set != nil && set.Sequence == a.Generation { // already in memory
			a.End()
			continue
		}
		f := w.flights.begin(lane.Message{Sequence: a.Generation, At: a.At, Subject: a.Subject}, w.reading.cursor.VoidMark())
		f.request, f.timer = found.Request, a
		if !m.proven || !w.lease.Held() {
			w.flights.untimed = append(w.flights.untimed, f)
			continue
		}
		w.proceed(f, m)
	}
	w.charge()
}

// logSeals logs the numbers of entries that a sweep pass has resealed or could not open.
func (l *timersLane) logSeals(w *worker, end role.Pass) {
	resealed, err := end.Resealed()
	if resealed > 0 {
		w.log.Info("resealed pending series and schedules with the first secret", "entries", resealed)
	}
	if err != nil {
		w.limitedLog.Log(slog.LevelWarn, "cannot reseal pending series and schedules, will retry", "err", err)
	}
	unopened, keys := end.Unopened()
	if l.unopened = unopened; unopened > 0 {
		w.limitedLog.Log(slog.LevelError, "timers do not fire, since they are sealed with a secret that is not set here; "+
			"add it to DELAY_SECRET, after the first one", "entries", unopened, "keys", slices.Sorted(maps.Keys(keys)))
	}
}

// yield decides when the timers' lane reads nothing, so that other lanes can send. If thousands of timers are due at
// the same time, the stream gets an entry for each firing. Reading such an entry costs as much as publishing it, and no
// message waits for the read. So the lane reads these entries after the broker has sent the messages. "delaybroker
// bench rounds" measures the difference.
type yield struct {
	burstStart time.Time // local; zero without a burst
}

// active reports whether the lane yields at a local time, given the number of firings in progress in this process.
// After maxYield, the lane does not yield again before the burst is over.
func (y *yield) active(firings int, local time.Time) bool {
	switch {
	case firings < burstFirings:
		y.burstStart = time.Time{}
		return false
	case y.burstStart.IsZero():
		y.burstStart = local
	}
	return local.Sub(y.burstStart) < maxYield
}
