package engine

import (
	"time"

	"delaybroker/broker/leader"
)

const (
	// backlogLate is the lateness from which a message counts as held up by an outage, and not only by the messages before
	// it.
	backlogLate = time.Second
	// backlogWait is the maximum time for which due messages are held back for the sake of order: one second for earlier
	// messages in other lanes or, in the intake, later in the stream. Reading 20,000 messages in forty lanes takes a third
	// of that.
	backlogWait = time.Second
	// answerWait is the time for which a full lane waits for the answers to its publishes. Most targets take a few
	// milliseconds; messages to a silent target would keep the lane full for five seconds.
	answerWait = 250 * time.Millisecond
)

// backlog keeps the order of a lane after an outage. Overdue messages are sent by due time, the oldest first:
//
//   - Within a level or a retry lane the order is strict, however many messages there are. A message is due no sooner
//     than the lane's delay after it was stored. So every message that is due before "the last message read was stored,
//     plus the delay" has been read, and only such messages are sent.
//   - The intake may hold messages of all due times in any order. There the order is that of all messages that are read
//     before the first is sent: every message of the intake, as far as it fits into memory (see Config.HoldMessages and
//     HoldBytes) and is read within backlogWait.
//   - Lanes that begin together, or that go on together after a lost connection, and that have long overdue messages,
//     send them in one order, exact to watermarkStep, for backlogWait (watermark.go). After backlogWait, each lane goes
//     by itself.
//
// Each target gets its messages in this order. Messages to several targets may arrive in another order: see watermark.
// The order has three limits. If the clocks of two leaders disagree, timestamps fall back by the difference. If a
// target refuses some of the messages, they come after a retry. Messages that a slow target would not take soon are
// given back, and come by way of a retry lane.
//
// The backlog opens when a lane begins, after a time in which nothing could be sent, and when a long overdue message is
// read. While it is open, all due messages wait on the wheel, which orders them. It closes when the lane has been read
// up to the point where messages are no longer overdue, or when the time is up. A lane without long overdue messages
// waits for no other lane. A full lane waits for the answers that make room in it, but not longer than answerWait.
type backlog struct {
	order *watermark
	wake  func() // wakes the loop; may be called from any goroutine

	open   bool
	member *watermarkMember // in one order with other lanes; nil while the lane goes by itself
	long   bool             // a message was long overdue
	since  time.Time        // local; since when messages can be sent; zero while they cannot
	began  leader.Time      // the leader's time at since
	waits  time.Time        // local; since when the lane is full and waits for answers; zero while it does not
	slow   int              // publishes in flight that missed answerWait
}

func newBacklog(m *watermark, wake func()) *backlog { return &backlog{order: m, wake: wake} }

func (b *backlog) together() bool { return b.member != nil }

// holdBack is called while nothing can be sent. It opens the backlog, if it is closed, together with other lanes.
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
// the time since it was due. A long overdue message opens the backlog.
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

// sendable returns the latest due time of messages that may be sent, and the time until this may change by itself. Full
// means that no more messages can be read before some have left.
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

// answered reports whether a full lane has got enough answers to go on: the answers to half of its messages, or all
// those that came within answerWait. The lane does not wait again for answers that missed answerWait: otherwise a
// silent target would stop the lane for as long as any of its messages is in flight.
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

// sent notes that messages were sent: the wait for answers starts over.
func (b *backlog) sent() { b.waits = time.Time{} }

// end closes the backlog.
func (b *backlog) end() {
	if b.together() {
		b.member.Leave()
	}
	b.become(backlog{})
}
