package engine

import (
	"time"

	"delaybroker/broker/leader"
)

const (
	// backlogLate is the smallest lateness that the broker ascribes to an outage. A message that is less late may only
	// have waited for the messages before it.
	backlogLate = time.Second
	// backlogWait is the maximum time for which due messages are held back for the sake of order. They wait for messages
	// with earlier due times in other lanes or, in the intake, later in the stream. Reading 20,000 messages in forty lanes
	// takes a third of that time.
	backlogWait = time.Second
	// answerWait is the maximum time for which a full lane waits for the answers to its publishes. Most targets answer
	// within a few milliseconds. A silent target would keep the lane full for five seconds.
	answerWait = 250 * time.Millisecond
)

// backlog keeps the order of a lane after an outage. It sends overdue messages by due time, the earliest first:
//
//   - Within a level or a retry lane the order is strict, for any number of messages. A message is due no earlier than
//     the lane's delay after it was stored. So when the last message read was stored at t, every message that is due
//     before t plus the delay has been read. Only such messages are sent.
//   - The intake may hold messages of all due times in any order. There, only the messages that the worker reads before
//     it sends the first message are in order. These messages fit into memory (see Config.HoldMessages and HoldBytes),
//     and the worker reads them within backlogWait.
//   - Lanes that begin or reconnect at the same time, and have long overdue messages, send them in one order, exact to
//     watermarkStep (watermark.go). After backlogWait, each lane keeps only its own order.
//
// Each target gets its messages in this order. Messages to different targets may arrive in another order: see
// watermark. Three events break the order. If the clocks of two leaders disagree, timestamps fall back by the
// difference. A refused message arrives later, after its retry. A message that a slow target would not accept soon also
// arrives later: the deliverer returns the message, and the worker stores it in a retry lane.
//
// The backlog opens in three cases: a worker begins, no message could be sent, or a long overdue message is read. While
// it is open, all due messages wait on the wheel, which orders them. It closes when the lane has been read up to
// messages that are not overdue, or after backlogWait. A lane without long overdue messages waits for no other lane. A
// full lane waits for the answers that make room in it, for at most answerWait.
type backlog struct {
	order *watermark
	wake  func() // wakes the loop; may be called from any goroutine

	open   bool
	member *watermarkMember // of the order with other lanes; nil if the lane keeps only its own order
	long   bool             // the backlog has contained a message that was overdue by at least backlogLate
	since  time.Time        // local; when messages became sendable; zero while they are not
	began  leader.Time      // the leader's time at since
	waits  time.Time        // local; when the full lane began to wait for answers; zero while the lane does not wait
	slow   int              // number of publishes in flight without an answer within answerWait
}

func newBacklog(m *watermark, wake func()) *backlog { return &backlog{order: m, wake: wake} }

func (b *backlog) together() bool { return b.member != nil }

// holdBack is called while no message can be sent. If the backlog is closed, it opens the backlog and joins the order
// with other lanes.
func (b *backlog) holdBack() {
	if !b.open {
		b.become(backlog{open: true, member: b.order.Join(b.wake)})
	}
	b.since = time.Time{}
}

// become opens or closes the backlog. It resets all fields but order and wake.
func (b *backlog) become(state backlog) {
	state.order, state.wake = b.order, b.wake
	*b = state
}

// gather reports whether a message that was just read must wait on the wheel until the backlog permits sending. Late is
// the time since the message was due; late is negative if the message is not due yet. If the message is overdue by at
// least backlogLate, gather opens the backlog.
func (b *backlog) gather(late time.Duration, level bool, now leader.Time, local time.Time) bool {
	if late < 0 || !b.open && late < backlogLate {
		return false
	}
	switch {
	case !b.open:
		b.become(backlog{open: true, since: local, began: now})
	case !b.together() && level:
		b.since = local // the lane makes progress
	}
	return true
}

// sendable returns the due time up to which messages may be sent, and the time after which this limit may have changed
// without an event. Full reports whether the lane's memory is full.
func (b *backlog) sendable(
	r *reading, f *flights, full bool, now leader.Time, local time.Time,
) (until leader.Time, wait time.Duration) {
	if !b.open {
		return now, forever
	}
	if b.since.IsZero() {
		b.since, b.began = local, now
	}
	first, any := f.next()
	b.long = b.long || any && now.Sub(first) >= backlogLate
	nothing := !b.long || !any || first.After(now)
	caughtUp := r.caughtUp(b.began)
	switch up := !local.Before(b.since.Add(backlogWait)); {
	case caughtUp && (nothing || up), up && !b.together(), up && r.delay == 0:
		b.end()
		return now, forever
	case up:
		b.member.Leave()
		b.member, b.since = nil, local
	}
	switch settled, ok := r.settled(); {
	case caughtUp || full && b.answered(f, local):
		until = now
	case ok && settled.Before(now):
		until = settled
	}
	if b.together() {
		mark := until
		if any && first.Before(mark) {
			mark = first
		}
		if floor := b.member.Advance(mark); floor.Before(until) {
			until = floor
		}
	}
	wait = b.since.Add(backlogWait).Sub(local)
	if !b.waits.IsZero() {
		wait = min(wait, b.waits.Add(answerWait).Sub(local))
	}
	return until, wait
}

// answered reports whether a full lane may send further messages: half of its messages are answered, or answerWait has
// passed. If answers did not come within answerWait, the lane does not wait for them again. If it did, a silent target
// would stop the lane as long as one of the target's messages is in flight.
func (b *backlog) answered(f *flights, local time.Time) bool {
	b.slow = min(b.slow, f.underway)
	if f.underway-b.slow > (f.count-b.slow)/2 {
		if b.waits.IsZero() {
			b.waits = local
		}
		if local.Sub(b.waits) < answerWait {
			return false
		}
		b.slow = f.underway
	}
	b.waits = time.Time{}
	return true
}

// sent records that the worker sent messages. The next wait for answers begins with a full answerWait.
func (b *backlog) sent() { b.waits = time.Time{} }

// end closes the backlog.
func (b *backlog) end() {
	if b.together() {
		b.member.Leave()
	}
	b.become(backlog{})
}
