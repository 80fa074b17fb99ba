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
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
)

// timersEvery takes the place of countEvery in the timers' lane, whose entries other lanes remove.
const timersEvery = time.Minute

// timersLane is the lane of named timers: each message is an entry of a timer, and the last on a subject is its state.
type timersLane struct {
	plainLane
	stream *role.Stream
	cursor string    // the subject of the lane's cursor
	began  time.Time // local; when the lane became ours

	sweep    role.Sweep
	unopened int // entries sealed with an unknown key, by the last pass
}

func newTimersLane(s *role.Stream, cursor string) *timersLane {
	return &timersLane{stream: s, cursor: cursor, began: time.Now()}
}

func (l *timersLane) source() source {
	return source{cursor: l.cursor, sparse: true, share: freeShare}
}

// parse reads an entry of the timers' stream. Whatever it is, it replaces the entry read before on its subject.
//
// An entry that is older than our ownership and whose key is unknown stays in the stream. The operator may have removed
// the key too early, and a dead letter would end the series. The sweep reports the entry, and finds it once its key is
// known.
func (l *timersLane) parse(w *worker, f *flight, in message.Incoming) {
	t := w.timers
	if in.KeysRead && l.beforeUs(w, leader.At(in.At)) {
		f.timer = &role.Alarm{Subject: f.Subject, Stage: role.Settled}
		return
	}
	e := entry.Parse(t.stream.Policy, in)
	before := t.latest[f.Subject]
	if before == nil || before.Sequence != e.Generation {
		if a := t.stream.LeftBehind(e, in); a != nil && l.beforeUs(w, leader.At(in.At)) {
			f.request, f.timer = e.Request, a
			return
		}
	}
	var follows *role.Alarm // the timer of the entry right before it, if in memory
	if before != nil && before.Sequence < f.Sequence && before.problem == nil && before.timer.Last() {
		follows = before.timer
	}
	switch {
	case before == nil || before.Sequence >= f.Sequence:
	case before.timer.GivesWay(e):
		w.supersede(before)
	default:
		before.timer.MayHaveFired()
	}
	f.request, f.problem, f.timer = e.Request, e.Problem, t.stream.OfEntry(e, in)
	switch e.Kind {
	case entry.Set:
		t.latest[f.Subject] = f
		f.request.Due = f.timer.Follow(follows, e)
		most := int(w.lane.MaxMsgSize)
		if f.problem == nil && e.Replaced == 0 && most > 0 && f.Size-len(f.Subject) > most-provision.LevelReserve {
			f.problem = t.stream.TooLargeToFire(f.timer, len(f.Data))
		}
	case entry.Cancel, entry.Unproven:
	default:
		f.problem = nil // the entry is a broker's
	}
	l.sweep.Left(t.stream.Ends(e, f.Subject, f.At))
	if t.stream.Outlives(e, in) {
		l.sweep.Left(f.At) // a pass reseals it
	}
}

// beforeUs reports whether an entry was stored before the lane was ours. None of our timers fires while the leader's
// clock is unknown.
func (l *timersLane) beforeUs(w *worker, stored leader.Time) bool {
	began, _ := w.clock.Now(l.began)
	return !w.clock.Known() || stored.Before(began)
}

func (l *timersLane) leaves(_ plan, f *flight) (at leader.Time, again bool) { return f.when(), false }

func (l *timersLane) holdsTimers() bool { return true }

// commit stores the cursor. Entries stay in the stream after they have been read, so a purge would be wrong.
func (l *timersLane) commit(ctx context.Context, _ *committer, todo commit) error {
	return l.stream.KeepCursor(ctx, timer.Cursor{Next: todo.upTo + 1, Created: todo.known.Created})
}

// report counts all entries as pending, since they stay after they have been read. One message is the cursor.
func (l *timersLane) report(w *worker, r *stats.Report) {
	r.Pending = max(r.Pending, max(w.reading.seen.Messages, 1)-1)
	r.Unopened = l.unopened
}

// idle counts the entries, and begins a pass through them.
func (l *timersLane) idle(w *worker, m moment) (wait time.Duration) {
	if w.reading.seen.Messages > 1 {
		wait = w.count(m.local, timersEvery)
	} else {
		wait = l.plainLane.idle(w, m)
	}
	return min(wait, l.sweepSoon(w, m))
}

// sweepSoon begins a pass through the timers' stream if one is due, and returns the time until the next.
func (l *timersLane) sweepSoon(w *worker, m moment) time.Duration {
	if !w.clock.Known() || !w.reading.live() {
		return forever
	}
	wait, ok := l.sweep.Wait(m.now, m.local, w.reading.seen.Messages == 0 && w.reading.last.Sequence == 0)
	switch {
	case !ok:
		return forever
	case wait > 0:
		return wait
	}
	before := l.sweep.Begin(m.now)
	w.wg.Go(func() {
		end := l.stream.Pass(w.working, before, func(b *role.Batch) { w.mail.Put(overdueFound{b}) })
		w.mail.Put(passEnded{l, end})
	})
	return forever
}

type (
	passEnded struct { // a pass through the timers' stream has ended
		lane *timersLane
		end  role.Pass
	}
	overdueFound struct{ batch *role.Batch } // a pass has found overdue timers
)

func (e passEnded) handle(w *worker, m moment) {
	if err := e.end.Err; err != nil {
		w.notes.Log(slog.LevelWarn, "cannot look for overdue timers, will retry", "err", err)
	}
	e.lane.sweep.End(e.end, m.local)
	e.lane.logSeals(w, e.end)
}

func (e overdueFound) handle(w *worker, m moment) {
	for _, found := range e.batch.Found {
		a := found.Alarm
		if in := w.timers.latest[a.Subject]; in != nil && in.Sequence == a.Generation { // it is in memory already
			a.End()
			continue
		}
		f := w.flights.take(lane.Stored{Sequence: a.Generation, At: a.At, Subject: a.Subject}, w.reading.cursor.Void())
		f.request, f.timer = found.Request, a
		if !m.proven || !w.lease.Held() {
			w.flights.untimed = append(w.flights.untimed, f)
			continue
		}
		w.proceed(f, m)
	}
	w.charge()
}

// logSeals logs the results of a pass about the keys of the entries' seals.
func (l *timersLane) logSeals(w *worker, end role.Pass) {
	resealed, err := end.Resealed()
	if resealed > 0 {
		w.log.Info("pending series and schedules are resealed with the first secret", "entries", resealed)
	}
	if err != nil {
		w.notes.Log(slog.LevelWarn, "pending series and schedules cannot be resealed; trying again", "err", err)
	}
	unopened, keys := end.Unopened()
	if l.unopened = unopened; unopened > 0 {
		w.notes.Log(slog.LevelError, "timers do not fire, since they are sealed with a secret that is not set here; "+
			"add it to DELAY_SECRET, after the first one", "entries", unopened, "keys", slices.Sorted(maps.Keys(keys)))
	}
}
