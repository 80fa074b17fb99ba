package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// readAhead is the time before the last message read leaves its lane at which reading resumes. Messages in memory are
	// ordered by their own times, so timestamps may fall back by this much, and no message is late.
	readAhead = 5 * time.Second
	// minHeld is the number of messages that a lane may hold however far from due they are, so that a small lane is read
	// at once.
	minHeld      = 256
	minHeldBytes = 1 << 20
	// maxSpan is the maximum number of messages that a cursor tracks, at spanCost bytes each: 16, and as much again while
	// its ring grows.
	maxSpan  = 1 << 20
	spanCost = 32
)

// reading tracks how far a lane was read, in which history of its stream, and which of its messages have arrived. The
// lane's loop owns it.
type reading struct {
	*lane.Reader
	delay  time.Duration
	from   uint64 // the first sequence that the previous owner left
	own    string // the subject of the lane's own cursor: see source
	cursor lane.Cursor

	epoch   uint64      // of the last message read
	created time.Time   // when its stream was created
	fresh   uint64      // the epoch that began the present history
	last    lane.Stored // the last message read, without its body
	seen    lane.Sample // the last look at the stream
}

func newReading(r *lane.Reader, delay time.Duration, own string, from uint64) *reading {
	return &reading{Reader: r, delay: delay, own: own, from: from}
}

// took notes a message that was read, and returns its mark. A message of another history is still delivered, but
// commits nothing.
func (r *reading) took(item lane.Item) (m lane.Mark, present bool) {
	r.Took(item)
	if item.Epoch < r.fresh {
		return r.cursor.Void(), false
	}
	r.last = lane.Stored{Sequence: item.Sequence, At: item.At, Behind: item.Behind}
	if r.own != "" && item.Subject == r.own {
		return r.cursor.Void(), true
	}
	return r.cursor.Begin(item.Sequence), true
}

// adopt begins an epoch, and reports whether it is of another history: then the messages in memory are still delivered,
// but commit nothing.
func (r *reading) adopt(e lane.Epoch) (fresh bool) {
	if e.Fresh {
		r.fresh = e.Number
		r.cursor.Reset()
		r.last = lane.Stored{}
	}
	r.epoch, r.created = e.Number, e.Info.Created
	r.looked(e.Info)
	if last := &r.last; last.Sequence > 0 { // its count is from the epoch before
		last.Behind = min(e.Info.LastSeq-last.Sequence, e.Info.Messages)
	}
	return e.Fresh
}

// looked handles an answer of the stream's leader.
func (r *reading) looked(s lane.Sample) {
	if s.Received.After(r.seen.Received) {
		r.seen = s
	}
}

// live reports whether the consumer is alive as far as is known, and its epoch is the one that is read.
func (r *reading) live() bool { return r.epoch != 0 && r.Live() == r.epoch }

// history identifies the stream that is read, as far as it was read.
func (r *reading) history() lane.History {
	return lane.History{Created: r.created, Read: r.last.Sequence, At: r.last.At}
}

// resumes returns the time when reading resumes; later is false if there is no reason to pause. Reading pauses while
// the last message read has long to wait and enough messages are in memory.
func (r *reading) resumes(messages, bytes int) (at leader.Time, later bool) {
	if r.last.Sequence == 0 || r.delay <= readAhead || messages < minHeld && bytes < minHeldBytes {
		return leader.Time{}, false
	}
	return leader.At(r.last.At).Add(r.delay - readAhead), true
}

// caughtUp reports whether all messages have been read that are due at the time or, in a lane without a delay, all that
// were stored by then.
func (r *reading) caughtUp(by leader.Time) bool {
	switch {
	case !r.live():
		return false // there was no look at its stream since
	case r.last.Sequence == 0:
		return r.seen.Messages == 0 || r.seen.LastSeq < r.from
	case r.last.Behind == 0:
		return true
	}
	return !r.leaves(max(0, r.delay-lookahead)).Before(by)
}

// settled returns the time up to which all due messages have been read, in a lane with a delay; ok is false elsewhere.
func (r *reading) settled() (until leader.Time, ok bool) {
	if r.delay == 0 || r.last.Sequence == 0 {
		return leader.Time{}, false
	}
	return r.leaves(r.delay - lookahead), true
}

// leaves returns when the last message read leaves the lane, if it does so the given time after it was stored.
func (r *reading) leaves(after time.Duration) leader.Time { return leader.At(r.last.At).Add(after) }

// behind returns the number of messages in the lane behind the last one read. For a lane that is not being read, the
// last look at its stream gives the number. Sequences without a message, of which a crash leaves some behind the
// cursor, count until they are read past, though never more than the stream has messages.
func (r *reading) behind() uint64 {
	if r.seen.LastSeq > r.last.Sequence+r.last.Behind {
		return min(r.seen.LastSeq-r.last.Sequence, r.seen.Messages)
	}
	return r.last.Behind
}

// wantsMore reports whether to read on.
func (w *worker) wantsMore(local time.Time) bool {
	if w.full() {
		return false
	}
	now, _ := w.clock.Now(local)
	resume, later := w.reading.resumes(w.flights.count, w.flights.bytes)
	return !later || !now.Before(resume)
}

// full reports whether nothing more fits into memory. In the intake, messages that are far from due use no more than
// half of the memory: see holdOrSpill.
func (w *worker) full() bool {
	return w.flights.count >= 2*w.engine.Settings.HoldMessages || w.reading.cursor.Span() >= maxSpan ||
		w.timers.count >= 2*maxSettlements || !w.flights.account.Room(w.flights.reserve())
}

// resumes returns the time when reading resumes, if it pauses although there is room.
func (w *worker) resumes() (at leader.Time, later bool) {
	if w.full() {
		return leader.Time{}, false
	}
	return w.reading.resumes(w.flights.count, w.flights.bytes)
}

// charge updates the account of the lane.
func (w *worker) charge() {
	w.flights.account.Set(
		int64(w.flights.bytes + spanCost*w.reading.cursor.Span() + settlementCost*w.timers.count))
}

// readSome takes the available items, up to a bound.
func (w *worker) readSome(item lane.Item) {
	for n := 1; ; n++ {
		w.read(item, time.Now()) // each item at its own time: an earlier time would prove too much of the leader's clock
		if n == turnItems || w.full() || !w.lease.Held() {
			return
		}
		select {
		case item = <-w.reading.Items():
		default:
			return
		}
	}
}

// read handles one item of the lane.
func (w *worker) read(item lane.Item, local time.Time) {
	mark, present := w.reading.took(item)
	if present && w.plan.slack == 0 { // a message that the reader collected tells the leader's time too late
		w.clock.Observe(item.Sequence, leader.At(item.At), local)
	}
	f := w.flights.take(item.Stored, mark)
	in := f.Incoming(w.lane.Stream)
	some := w.parse(f, in)
	f.Header = nil
	if !some {
		return
	}
	if f.problem != nil && f.problem.Code == message.UnknownKey {
		f.unproven = &unproven{incoming: in}
	}
	w.charge()
	m := w.moment(local)
	when := f.when()
	switch first, any := w.flights.next(); {
	case f.problem == nil && w.backlog.gather(m.now.Sub(when), w.lane.Delay > 0, m.now, local):
		w.flights.hold(f, when)
	case !m.proven || !w.lease.Held(): // until the time is known, and the lane certainly ours
		w.flights.untimed = append(w.flights.untimed, f)
	case any && f.problem == nil && !first.After(when) && !when.After(m.now):
		w.flights.hold(f, when) // behind messages that became due in the meantime, which are sent in the next pass
	default:
		w.proceed(f, m)
		w.charge()
	}
}

// parse reads the request of a message, and reports whether the message needs a step.
func (w *worker) parse(f *flight, in message.Incoming) (some bool) {
	w.plan.kind.parse(w, f, in)
	if f.timer != nil && f.timer.Nothing() {
		w.end(f)
		return false
	}
	return true
}

// adopt begins an epoch.
func (w *worker) adopt(e lane.Epoch) {
	if w.reading.adopt(e) {
		w.commits.reset()
	}
	w.clock.take(e.Info)
	w.adopted()
}
