package broker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/role"
)

// timers are the named timers that a lane has in memory. It belongs to the lane's loop. See package alarm.
type timers struct {
	stream *role.Stream
	latest map[string]*flight       // by subject: the sets that the timers' lane has read; nil in other lanes
	mine   map[*role.Alarm]struct{} // those that this lane fires
	loaded int                      // bytes of bodies that were read for their markers

	began time.Time // local; since when the lane is ours

	copying, looking   int       // questions to JetStream underway
	uncopied, unlooked []*flight // to be read, in order: from any replica, and from the leader

	settlements
	sweep    role.Sweep
	unopened int // entries that are sealed with a key that is not known, by the last pass
}

func newTimers(s *role.Stream, lane bool) *timers {
	t := &timers{
		stream: s, mine: make(map[*role.Alarm]struct{}), settlements: newSettlements(), began: time.Now(),
	}
	if lane {
		t.latest = make(map[string]*flight)
	}
	return t
}

// parseMarker makes a timer of a message whose request is that of a marker.
func (w *worker) parseMarker(f *flight) { f.timer = w.timers.stream.OfMarker(f.request) }

// parseEntry reads an entry of the timers' stream. Whatever it is, the one that was read before it on its subject is
// gone.
func (w *worker) parseEntry(f *flight, in message.Incoming) {
	t := w.timers
	e := t.stream.Policy.ParseTimer(in)
	before := t.latest[f.Subject]
	if before == nil || before.Sequence != e.Generation {
		if a := t.stream.LeftBehind(e, in); a != nil && w.beforeUs(leader.At(in.At)) {
			f.request, f.timer = e.Request, a
			return
		}
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
	case message.SetEntry:
		t.latest[f.Subject] = f
		most := int(w.lane.MaxMsgSize)
		if f.problem == nil && e.Replaced == 0 && most > 0 && f.Size-len(f.Subject) > most-provision.LevelReserve {
			f.problem = t.stream.TooLargeToFire(f.timer, len(f.Data))
		}
	case message.CancelEntry, message.UnprovenEntry:
	default:
		f.problem = nil // it is ours
	}
	t.sweep.Left(t.stream.Ends(e, f.Subject, f.At))
	if t.stream.Outlives(e, in) {
		t.sweep.Left(f.At) // a pass seals it anew
	}
}

// isEntry reports whether the messages of the lane are entries of timers.
func (w *worker) isEntry() bool { return w.lane.Kind == streams.Timers }

// beforeUs reports whether an entry was stored before the lane was ours. Nothing of ours fires while the leader's clock
// is not known.
func (w *worker) beforeUs(stored leader.Time) bool {
	began, _ := w.clock.Now(w.timers.began)
	return !w.clock.Known() || stored.Before(began)
}

// supersede lets a timer go that was replaced or cancelled, unless its firing is decided, or something of it is on its
// way: then it will find out.
func (w *worker) supersede(f *flight) {
	if f.timer.Supersede() && f.sent == nil && w.flights.takeOff(f) {
		f.timer.Withdraw()
		w.remove(f)
	}
}

// endTimer forgets a timer that leaves memory.
func (w *worker) endTimer(f *flight) {
	w.forgetTimer(f)
	w.endAlarm(f.timer)
}

// forgetTimer forgets the message of a timer.
func (w *worker) forgetTimer(f *flight) {
	if t := w.timers; t.latest[f.timer.Subject] == f {
		delete(t.latest, f.timer.Subject)
	}
	w.unload(f)
}

// endAlarm gives up the firing of a timer.
func (w *worker) endAlarm(a *role.Alarm) {
	t := w.timers
	if _, ok := t.mine[a]; ok {
		t.stream.Release(a)
		delete(t.mine, a)
	}
	a.End()
}

// release gives up all firings.
func (t *timers) release() {
	for a := range t.mine {
		t.stream.Release(a)
	}
	t.mine = nil
}

// storeCursor commits in the timers' lane: what is armed stays in its stream, so a purge would be wrong.
func (t *timers) storeCursor(ctx context.Context, todo commit) error {
	return t.stream.KeepCursor(ctx, timer.Cursor{Next: todo.upTo + 1, Created: todo.known.Created})
}

// sweepSoon begins a pass through the timers' stream if one is due, and returns how long until the next.
func (w *worker) sweepSoon(m moment, local time.Time) time.Duration {
	if !w.isEntry() || !w.clock.Known() || !w.reading.live() {
		return forever
	}
	s := &w.timers.sweep
	wait, ok := s.Wait(m.now, local, w.reading.seen.Messages == 0 && w.reading.last.Sequence == 0)
	switch {
	case !ok:
		return forever
	case wait > 0:
		return wait
	case !w.lease.Held(), !w.shared.links.Online():
		return forever // the loop is woken when they are back
	}
	before := s.Begin(m.now)
	w.wg.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.wg.Go(func() {
			select {
			case <-ctx.Done():
			case <-w.gone:
				cancel()
			}
		})
		end := w.timers.stream.Pass(ctx, before, func(b *role.Batch) { w.mail.Put(swept{batch: b}) })
		w.mail.Put(swept{end: end})
	})
	return forever
}

// swept is the event that a pass has picked some up, or has ended.
type swept struct {
	batch *role.Batch // nil at the end
	end   role.Pass
}

// swept takes in what a pass has picked up, or its end.
func (w *worker) swept(e swept, m moment, local time.Time) {
	if e.batch == nil {
		if err := e.end.Err; err != nil {
			w.notes.Log(slog.LevelWarn, "looking for overdue timers; trying again", "err", err)
		}
		w.timers.sweep.End(e.end, local)
		w.logSeals(e.end)
		return
	}
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

// logSeals logs what a pass has found of the keys that entries are sealed with.
func (w *worker) logSeals(end role.Pass) {
	resealed, err := end.Resealed()
	if resealed > 0 {
		w.log.Info("pending series and schedules are sealed anew, with the first secret", "entries", resealed)
	}
	if err != nil {
		w.notes.Log(slog.LevelWarn, "pending series and schedules are still sealed with an earlier secret; trying again",
			"err", err)
	}
	unopened, keys := end.Unopened()
	if w.timers.unopened = unopened; unopened > 0 {
		w.notes.Log(slog.LevelError, "timers do not fire, since they are sealed with a secret that is not known here; "+
			"name it in DELAY_SECRET, behind the first", "entries", unopened, "keys", slices.Sorted(maps.Keys(keys)))
	}
}
