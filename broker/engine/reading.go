package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// readAhead is the time before the end of the last read message's delay at which a paused reading resumes. The wheel
	// orders the messages by their due times. So the timestamps of a stream may fall back by up to readAhead, and no
	// message is late.
	readAhead = 5 * time.Second
	// Reading does not pause while a lane holds fewer than minHeld messages and fewer than minHeldBytes bytes in
	// memory, so that a small lane is read completely.
	minHeld      = 256
	minHeldBytes = 1 << 20
	// maxSpan is the maximum number of sequences that a cursor tracks. Each takes spanCost bytes: 16, and 16 more while
	// the cursor's ring grows.
	maxSpan  = 1 << 20
	spanCost = 32
)

// reading tracks the position up to which a lane was read, the history of its stream, and the messages that have
// arrived. Only the lane's loop uses it.
type reading struct {
	*lane.Reader
	delay  time.Duration
	from   uint64 // the sequence at which reading began
	own    string // the subject of the lane's stored cursor; empty for none: see source
	cursor lane.Cursor

	epoch   uint64      // the last epoch that began
	created time.Time   // when its stream was created
	fresh   uint64      // the epoch that began the present history
	last    lane.Stored // the last message read, without its body
	seen    lane.Sample // the last answer of the stream's leader
}

func newReading(r *lane.Reader, delay time.Duration, own string, from uint64) *reading {
	return &reading{Reader: r, delay: delay, own: own, from: from}
}

// record records a message that was read, and returns its mark. Present is false for a message of an earlier history:
// it is still delivered, but its arrival commits nothing.
func (r *reading) record(item lane.Item) (m lane.Mark, present bool) {
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

// adopt begins an epoch, and reports whether the stream has a new history. If it has, the worker still delivers the
// messages in memory, but their arrival commits nothing.
func (r *reading) adopt(e lane.Epoch) (fresh bool) {
	if e.Fresh {
		r.fresh = e.Number
		r.cursor.Reset()
		r.last = lane.Stored{}
	}
	r.epoch, r.created = e.Number, e.Info.Created
	r.looked(e.Info)
	if last := &r.last; last.Sequence > 0 { // its count of messages behind it is from the previous epoch
		last.Behind = min(e.Info.LastSeq-last.Sequence, e.Info.Messages)
	}
	return e.Fresh
}

// looked records an answer of the stream's leader, unless a newer one is recorded.
func (r *reading) looked(s lane.Sample) {
	if s.Received.After(r.seen.Received) {
		r.seen = s
	}
}

// live reports whether the consumer of the present epoch is alive, as far as the reader knows.
func (r *reading) live() bool { return r.epoch != 0 && r.Live() == r.epoch }

// history returns the identity of the stream, up to the last message read.
func (r *reading) history() lane.History {
	return lane.History{Created: r.created, Read: r.last.Sequence, At: r.last.At}
}

// resumes returns the time at which reading resumes; later is false if reading does not pause. Reading pauses while
// enough messages are in memory and the last message read leaves the lane more than readAhead from now.
func (r *reading) resumes(messages, bytes int) (at leader.Time, later bool) {
	if r.last.Sequence == 0 || r.delay <= readAhead || messages < minHeld && bytes < minHeldBytes {
		return leader.Time{}, false
	}
	return leader.At(r.last.At).Add(r.delay - readAhead), true
}

// caughtUp reports whether all messages that are due by a time have been read. In a lane without a delay, it reports
// whether all messages that were stored by then have been read.
func (r *reading) caughtUp(by leader.Time) bool {
	switch {
	case !r.live():
		return false // the state of the stream is unknown
	case r.last.Sequence == 0:
		return r.seen.Messages == 0 || r.seen.LastSeq < r.from
	case r.last.Behind == 0:
		return true
	}
	return !r.leaves(max(0, r.delay-lookahead)).Before(by)
}

// settled returns the time up to which all due messages have been read. ok is false in a lane without a delay, and
// before the first message was read.
func (r *reading) settled() (until leader.Time, ok bool) {
	if r.delay == 0 || r.last.Sequence == 0 {
		return leader.Time{}, false
	}
	return r.leaves(r.delay - lookahead), true
}

// leaves returns the time at which the last message read leaves the lane, if messages leave the given time after they
// were stored.
func (r *reading) leaves(after time.Duration) leader.Time { return leader.At(r.last.At).Add(after) }

// behind returns the number of messages behind the last one read. While the lane is not being read, the last answer of
// the stream's leader determines the number. Sequences without a message, which a crash may leave behind the cursor,
// count until reading has passed them. The number never exceeds the number of messages in the stream.
func (r *reading) behind() uint64 {
	if r.seen.LastSeq > r.last.Sequence+r.last.Behind {
		return min(r.seen.LastSeq-r.last.Sequence, r.seen.Messages)
	}
	return r.last.Behind
}

// wantsMore reports whether the loop should read further messages.
func (w *worker) wantsMore(local time.Time) bool {
	if w.full() {
		return false
	}
	now, _ := w.clock.Now(local)
	resume, later := w.reading.resumes(w.flights.count, w.flights.bytes)
	return !later || !now.Before(resume)
}

// full reports whether no further message fits into memory. In the intake, messages that are far from due use at most
// half of the memory: see holdOrSpill.
func (w *worker) full() bool {
	return w.flights.count >= 2*w.engine.Settings.HoldMessages || w.reading.cursor.Span() >= maxSpan ||
		w.timers.count >= 2*maxSettlements || !w.flights.account.Room(w.flights.reserve())
}

// resumes returns the time at which reading resumes, if it pauses for another reason than memory.
func (w *worker) resumes() (at leader.Time, later bool) {
	if w.full() {
		return leader.Time{}, false
	}
	return w.reading.resumes(w.flights.count, w.flights.bytes)
}

// charge updates the memory account of the lane.
func (w *worker) charge() {
	w.flights.account.Set(
		int64(w.flights.bytes + spanCost*w.reading.cursor.Span() + settlementCost*w.timers.count))
}

// readSome reads the item and the available items after it, at most maxItems together.
func (w *worker) readSome(item lane.Item) {
	for n := 1; ; n++ {
		w.read(item, time.Now()) // a time before the receipt of an item would put the leader's clock ahead
		if n == maxItems || w.full() || !w.lease.Held() {
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
	mark, present := w.reading.record(item)
	if present && w.plan.slack == 0 { // with a slack, the reader delays items, so their timestamps are old
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
	case !m.proven || !w.lease.Held(): // the message waits until the time is proven and the lease is held
		w.flights.untimed = append(w.flights.untimed, f)
	case any && f.problem == nil && !first.After(when) && !when.After(m.now):
		w.flights.hold(f, when) // earlier messages are due, and are sent in the next pass
	default:
		w.proceed(f, m)
		w.charge()
	}
}

// parse parses the request of a message, and reports whether the message needs a step.
func (w *worker) parse(f *flight, in message.Incoming) (some bool) {
	w.plan.kind.parse(w, f, in)
	if f.timer != nil && f.timer.NeedsNoWork() {
		w.end(f)
		return false
	}
	return true
}

// adopt handles the beginning of an epoch.
func (w *worker) adopt(e lane.Epoch) {
	if w.reading.adopt(e) {
		w.commits.reset()
	}
	w.clock.take(e.Info)
	w.adopted()
}
