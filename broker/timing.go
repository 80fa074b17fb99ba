package broker

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// stage is how far the firing of a timer has come.
type stage int

// The stages, in order.
const (
	stagePending stage = iota // nobody has decided, as far as is known, and the body is in memory
	stageDoubt                // only the last entry of the subject can tell what is true
	stageFired                // the leader has stored that we fire it
	stageSettled              // it has been delivered, or is in a retry lane or among the dead letters
)

// timing is what a flight has of a named timer.
type timing struct {
	subject    string // delaytimer.<key>.<target>
	generation uint64 // of the set
	at         time.Time
	size       int // of the body
	stage      stage
	superseded bool // a later entry of its subject was read
	loaded     bool // its body was read when it was due, and is accounted

	first bool            // there was nothing on the subject before it
	entry uint64          // once it is settled: the last of what is to be removed from its subject; zero for none
	keep  bool            // and it stays itself
	what  message.Outcome // to be told in an entry behind it; empty for nothing
	alone bool            // the entries before it are not removed with it

	behind time.Time   // local; since when the stream is said to end before the generation; zero when it is not
	batch  *sweepBatch // it belongs to; nil if a lane has it
}

// nothing reports whether there is nothing to do about an entry.
func (t *timing) nothing() bool { return t.stage == stageSettled && t.entry == 0 }

// arrived notes that the message has arrived elsewhere, and reports whether an entry is to be removed.
func (t *timing) arrived(sent *publish) (remove bool) {
	isDead := sent != nil && sent.kind == dead
	if isDead && t.stage < stageFired { // it never was a timer
		t.entry = t.generation
	}
	if t.stage == stagePending && sent != nil && sent.kind == hop && !t.first { // its marker is stored
		t.entry, t.keep, t.stage = t.generation, true, stageSettled
		return true
	}
	if t.entry == 0 || t.stage == stageSettled {
		return false
	}
	switch {
	case isDead:
		t.what = message.OutcomeDead
	case sent != nil:
		t.what = message.OutcomeRetrying
	default:
		t.what = message.OutcomeDelivered
	}
	t.stage = stageSettled
	return true
}

// firing is what the last entry of its subject is judged for.
func (t *timing) firing(by string) timer.Firing {
	return timer.Firing{Generation: t.generation, At: t.at, By: by}
}

// timers are the timers that a lane has in memory. It belongs to the lane's loop.
type timers struct {
	latest map[string]*flight // by subject: the sets that the timers' lane has read; nil in other lanes
	mine   map[*flight]uint64 // generations that this lane fires
	loaded int                // bytes of bodies that were read when they were due

	began time.Time // local; since when the lane is ours

	looking, removing   int // questions to JetStream underway
	unlooked, unremoved []*flight

	sweep sweep
}

func newTimers(lane bool) *timers {
	t := &timers{mine: make(map[*flight]uint64), began: time.Now()}
	if lane {
		t.latest = make(map[string]*flight)
	}
	return t
}

// take claims the firing of a timer within this process.
func (t *timers) take(c *timer.Claims, f *flight) bool {
	if !c.Take(f.timer.generation, f) {
		return false
	}
	t.mine[f] = f.timer.generation
	return true
}

// release gives up all firings.
func (t *timers) release(c *timer.Claims) {
	for f, generation := range t.mine {
		c.Release(generation, f)
	}
	t.mine = nil
}

// endTimer forgets a timer that leaves memory.
func (w *worker) endTimer(f *flight) {
	t := w.timers
	if generation, ok := t.mine[f]; ok {
		w.shared.claims.Release(generation, f)
		delete(t.mine, f)
	}
	if t.latest[f.timer.subject] == f {
		delete(t.latest, f.timer.subject)
	}
	if f.timer.loaded {
		t.loaded -= f.timer.size
		w.lookOn()
	}
	if f.timer.batch != nil {
		f.timer.batch.ended()
	}
}

// parseMarker makes a timer of a message whose request is that of a marker. Its seal vouches for its id.
func (w *worker) parseMarker(f *flight) {
	id, err := message.ParseID(f.request.ID)
	if err != nil {
		panic("bug: a hop has been read with an id that cannot be: " + f.request.ID)
	}
	f.timer = &timing{
		subject:    w.shared.names.Timer(f.request.Timer.Key, f.request.Target),
		generation: id.Sequence, at: id.At, size: f.request.Timer.Size, stage: stageDoubt,
	}
}

// parseEntry reads an entry of the timers' stream. Whatever it is, the one that was read before it on its subject is
// gone.
func (w *worker) parseEntry(f *flight, in message.Incoming) {
	e := w.shared.keys.policy.ParseTimer(in)
	if w.leftBehind(f, e) {
		return
	}
	if before := w.timers.latest[f.Subject]; before != nil && before.Sequence < f.Sequence &&
		!(e.Kind == message.FiredEntry && e.Generation == before.timer.generation) {
		w.supersede(before)
	}
	f.request, f.problem = e.Request, e.Problem
	f.timer = &timing{
		subject: f.Subject, generation: f.Sequence, at: f.At, size: len(f.Data), stage: stagePending, first: e.First,
		alone: !w.shared.keys.policy.CanName(f.Subject),
	}
	switch e.Kind {
	case message.SetEntry:
		w.timers.latest[f.Subject] = f
		if most := int(w.lane.MaxMsgSize); f.problem == nil && most > 0 && f.Size-len(f.Subject) > most-levelReserve {
			f.problem = tooLargeToFire(f)
		}
		w.timers.sweep.left(f.request.Due)
	case message.CancelEntry:
		f.timer.stage, f.timer.entry, f.timer.keep = stageSettled, f.Sequence, w.plan.history > 0
		w.timers.sweep.left(f.At.Add(w.plan.history - sweepLate))
	case message.UnprovenEntry: // until its key is known
	default: // ours: the lane of its marker has it, or nobody needs it
		f.problem, f.timer.stage = nil, stageSettled
		switch e.Kind {
		case message.FiredEntry:
			w.timers.sweep.left(f.At)
		case message.OverEntry:
			w.timers.sweep.left(f.At.Add(w.plan.history - sweepLate))
		}
	}
}

// leftBehind takes a firing up that the lane's last owner may have left: its set is gone, so it was delivered, and a
// crash came before its own entry was removed. It is found as a marker would find it. The sweep would find it too, and
// later than the target's stream recognises copies.
func (w *worker) leftBehind(f *flight, e message.Entry) bool {
	if e.Kind != message.FiredEntry || e.By == w.shared.id || !f.At.Before(w.timers.began) ||
		w.timers.latest[f.Subject] != nil {
		return false
	}
	id, err := message.ParseID(e.Request.ID)
	f.request = e.Request
	f.timer = &timing{subject: f.Subject, generation: e.Generation, at: id.At, size: len(f.Data), stage: stageDoubt}
	return err == nil
}

// supersede lets a timer go that was replaced or cancelled, unless its firing is decided, or something of it is on its
// way: then it will find out.
func (w *worker) supersede(f *flight) {
	if f.timer.stage >= stageFired {
		return
	}
	f.timer.superseded = true
	if f.sent == nil && w.flights.takeOff(f) {
		f.timer.stage, f.timer.entry, f.timer.alone = stageSettled, f.timer.generation, true
		w.remove(f)
	}
}
