package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// A paused reading resumes 5 s (readAhead) before the last message read leaves the lane. The timestamps of a stream
	// may fall back by up to readAhead, and still no message is late, because the wheel orders the messages by due time.
	readAhead = 5 * time.Second
	// While a lane holds fewer than minHeld messages and fewer than minHeldBytes bytes in memory, reading does not pause.
	// So a small lane is read completely.
	minHeld      = 256
	minHeldBytes = 1 << 20
	// maxSpan is the maximum number of messages that a cursor tracks. Each takes spanCost bytes: 16 in the cursor's ring,
	// and 16 more while the ring grows.
	maxSpan  = 1 << 20
	spanCost = 32
)

// reading tracks the position up to which a lane was read, the history of the lane's stream, and the messages that have
// arrived. Only the lane's loop uses a reading.
type reading struct {
	*lane.Reader
	delay         time.Duration
	start         uint64      // the sequence at which reading began
	cursorSubject string      // the subject of the lane's stored cursor; empty if there is none: see source
	cursor        lane.Cursor // which of the messages read have arrived

	epoch        uint64       // number of the latest epoch, the life of one consumer; zero before the first
	created      time.Time    // when the stream was created, as reported at the beginning of that epoch
	historyEpoch uint64       // the first epoch of the present history
	last         lane.Message // the last message read; only Sequence, At and Pending are set
	sample       lane.Sample  // the last answer of the stream's leader
}

func newReading(r *lane.Reader, delay time.Duration, cursorSubject string, start uint64) *reading {
	return &reading{Reader: r, delay: delay, cursorSubject: cursorSubject, start: start}
}

// record records a message that was read, and returns its mark in the cursor. Present is false for a message of an
// earlier history: the worker still delivers such a message, but its arrival commits nothing.
func (r *reading) record(item lane.Item) (m lane.Mark, present bool) {
	r.Release(item)
	if item.Epoch < r.historyEpoch {
		return r.cursor.VoidMark(), false
	}
	r.last = lane.Message{Sequence: item.Sequence, At: item.At, Pending: item.Pending}
	if r.cursorSubject != "" && item.Subject == r.cursorSubject {
		return r.cursor.VoidMark(), true
	}
	return r.cursor.Begin(item.Sequence, item.Subject), true
}

// adopt begins an epoch, and reports whether the stream has a new history. If it has, the messages in memory are of an
// earlier history: see record.
func (r *reading) adopt(e lane.Epoch) (newHistory bool) {
	if e.NewHistory {
		r.historyEpoch = e.Number
		r.cursor.Reset()
		r.last = lane.Message{}
	}
	r.epoch, r.created = e.Number, e.Sample.Created
	r.recordSample(e.Sample)
	if last := &r.last; last.Sequence > 0 { // last.Pending is from the previous epoch
		last.Pending = min(e.Sample.LastSeq-last.Sequence, e.Sample.Messages)
	}
	return e.NewHistory
}

// recordSample records an answer of the stream's leader, unless a newer answer is already recorded.
func (r *reading) recordSample(s lane.Sample) {
	if s.Received.After(r.sample.Received) {
		r.sample = s
	}
}

// live reports whether the reader believes that the consumer of the present epoch is alive.
func (r *reading) live() bool { return r.epoch != 0 && r.Live() == r.epoch }

// history returns the data by which lane.Judge recognises the stream.
func (r *reading) history() lane.History {
	return lane.History{Created: r.created, Read: r.last.Sequence, At: r.last.At}
}

// resumeTime returns the time from which on the lane is read again: readAhead before the last message read leaves the
// lane. Paused is false if reading does not pause: before the first message, in a lane with a short delay, and while
// few messages are in memory.
func (r *reading) resumeTime(messages, bytes int) (at leader.Time, paused bool) {
	if r.last.Sequence == 0 || r.delay <= readAhead || messages < minHeld && bytes < minHeldBytes {
		return leader.Time{}, false
	}
	return leader.At(r.last.At).Add(r.delay - readAhead), true
}

// caughtUp reports whether all messages that are due by a time have been read. In a lane without a delay, caughtUp
// reports whether all messages that were stored by that time have been read.
func (r *reading) caughtUp(by leader.Time) bool {
	switch {
	case !r.live():
		return false // the state of the stream is unknown
	case r.last.Sequence == 0:
		return r.sample.Messages == 0 || r.sample.LastSeq < r.start
	case r.last.Pending == 0:
		return true
	}
	return !leader.At(r.last.At).Add(max(0, r.delay-lookahead)).Before(by)
}

// completeUntil returns the due time up to which all messages of the lane have been read. Ok is false in a lane without
// a delay, and before the first message was read.
func (r *reading) completeUntil() (due leader.Time, ok bool) {
	if r.delay == 0 || r.last.Sequence == 0 {
		return leader.Time{}, false
	}
	return leader.At(r.last.At).Add(r.delay - lookahead), true
}

// pending returns the number of messages that the stream stored after the last one read. While the lane is not being
// read, the last answer of the stream's leader determines this number. Then the number may include deleted sequences,
// but it is never larger than the number of messages in the stream.
func (r *reading) pending() uint64 {
	if r.sample.LastSeq > r.last.Sequence+r.last.Pending {
		return min(r.sample.LastSeq-r.last.Sequence, r.sample.Messages)
	}
	return r.last.Pending
}

// wantsMore reports whether the loop should read further messages.
func (w *worker) wantsMore(local time.Time) bool {
	if w.full() {
		return false
	}
	now, _ := w.clock.Now(local)
	resume, paused := w.reading.resumeTime(w.flights.count, w.flights.bytes)
	return !paused || !now.Before(resume)
}

// full reports whether the lane must read no further message, because the memory for messages, for the cursor or for
// settlements is used up. In a lane without a delay, messages that are far from due use about half of the memory at
// most: see holdOrSpill.
func (w *worker) full() bool {
	cursor := &w.reading.cursor
	return w.flights.count >= 2*w.engine.Settings.HoldMessages || cursor.Span() >= maxSpan || w.commits.crowded(cursor) ||
		w.timers.count >= 2*maxSettlements || !w.flights.account.room(w.flights.reserve())
}

// resumeTime returns the time at which reading resumes. Known is false if reading does not pause, or pauses until
// memory becomes free.
func (w *worker) resumeTime() (at leader.Time, known bool) {
	if w.full() {
		return leader.Time{}, false
	}
	return w.reading.resumeTime(w.flights.count, w.flights.bytes)
}

// charge updates the memory account of the lane.
func (w *worker) charge() {
	w.flights.account.Set(
		int64(w.flights.bytes + spanCost*w.reading.cursor.Span() + settlementCost*w.timers.count))
}

// readSome reads an item and the available items after it, at most maxItems in total.
func (w *worker) readSome(item lane.Item) {
	for n := 1; ; n++ {
		w.read(item, time.Now()) // an earlier local time would make the estimate of the leader's time too high
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

func (w *worker) read(item lane.Item, local time.Time) {
	mark, present := w.reading.record(item)
	if present && w.plan.Slack == 0 { // with a slack, the reader delays items, so their timestamps are old
		w.clock.Observe(item.Sequence, leader.At(item.At), local)
	}
	f := w.flights.begin(item.Message, mark)
	in := f.Incoming(w.lane.Stream)
	needsStep := w.parse(f, in)
	f.Header = nil
	if !needsStep {
		return
	}
	if f.problem != nil && f.problem.Code == message.UnknownKey {
		f.keyWait = &keyWait{incoming: in}
	}
	w.charge()
	m := w.moment(local)
	attempt := f.nextAttempt()
	switch first, ok := w.flights.nextTime(); {
	case f.problem == nil && w.backlog.gather(m.now.Sub(attempt), w.lane.Delay > 0, m.now, local):
		w.flights.hold(f, attempt)
	case !m.proven || !w.lease.Held(): // the message waits until the time is proven and the lease is held
		w.flights.untimed = append(w.flights.untimed, f)
	case ok && f.problem == nil && !first.After(attempt) && !attempt.After(m.now):
		w.flights.hold(f, attempt) // earlier messages are due, and are sent in the next pass
	default:
		w.proceed(f, m)
		w.charge()
	}
}

// parse parses the request of a message. It reports whether the message needs a step; if not, parse has ended the
// flight.
func (w *worker) parse(f *flight, in message.Incoming) (needsStep bool) {
	w.plan.kind.parse(w, f, in)
	if f.timer != nil && f.timer.NeedsNoWork() {
		w.end(f)
		return false
	}
	return true
}

func (w *worker) adopt(e lane.Epoch) {
	if w.reading.adopt(e) {
		w.commits.reset()
	}
	w.clock.record(e.Sample)
	w.onEpoch()
}
