package engine

import (
	"time"

	"delaybroker/broker/leader"
)

const (
	// A message that is overdue by at least backlogLate counts as long overdue: an outage has probably delayed it. A
	// smaller lateness may have a harmless cause: the lane was sending earlier messages.
	backlogLate = time.Second
	// backlogWait is the time for which due messages wait for messages that are due earlier, first for those of all
	// lanes, then for those of their own lane: see backlog.
	backlogWait = time.Second
	// answerWait is the maximum time for which a lane whose memory is full waits for answers. Most targets answer within a
	// few milliseconds. A silent target would keep the lane full for five seconds.
	answerWait = 250 * time.Millisecond
)

// backlog keeps the order of a lane after an outage. It sends overdue messages by due time, the earliest first:
//
//   - In a level or a retry lane, all overdue messages are in order, however many they are. Usually, a message is
//     stored in the lane at least the lane's delay, less the lookahead, before it is due. So if the latest message that
//     was read was stored at t, every message that is due before t plus the delay, less the lookahead, has been read.
//     Only such messages are sent, unless the memory is full. The order does not hold for messages from a crowded
//     intake (holdOrSpill), and messages whose wait in a retry lane is shorter than the lane's delay (deferStep).
//   - A lane without a delay, such as the intake, may have messages with any due times, in any order. Only the messages
//     that the worker reads before it sends the first message are in order. These are as many as fit into memory
//     (Config.HoldMessages and HoldBytes), and as the worker reads within backlogWait.
//   - Lanes that begin or reconnect at the same time, and have long overdue messages, send these messages in one order
//     by due time, with a tolerance of watermarkStep (watermark.go). After backlogWait, each lane keeps only its own
//     order.
//
// Each target gets its messages in this order. Messages to different targets may arrive in another order: see
// watermark. Three events break the order. After a change of the leader, the stream's timestamps may fall back by the
// difference of the two leaders' clocks. A refused message arrives later, after its retry. A message to a slow target
// also arrives later, if the deliverer returns the message, and the worker stores it in a retry lane.
//
// The backlog opens in three cases: a worker begins, no message can be sent, or a long overdue message is read. While
// the backlog is open, all due messages wait on the wheel, which orders them. The backlog closes in three cases:
//
//   - The worker has read all overdue messages, and either none was long overdue, or all due messages are sent.
//   - backlogWait is over, and either the worker has read all overdue messages, or the lane has no delay.
//   - backlogWait is over, and neither holds. Then the lane first leaves the order with other lanes, and the backlog
//     closes when no overdue message was read for another backlogWait.
//
// A lane whose memory is full waits for answers, which free memory, for at most answerWait.
type backlog struct {
	watermark *watermark
	wake      func() // wakes the loop; may be called from any goroutine

	open          bool
	member        *watermarkMember // nil if the lane keeps only its own order
	longOverdue   bool             // the backlog has contained a long overdue message
	waitStart     time.Time        // local; the start of the present backlogWait; zero while no message can be sent
	sendableSince leader.Time      // when messages became sendable
	fullSince     time.Time        // local; when the full lane began to wait for answers; zero while it does not wait
	slowAnswers   int              // number of answers for which the lane no longer waits
}

func newBacklog(m *watermark, wake func()) *backlog { return &backlog{watermark: m, wake: wake} }

// ordered reports whether the lane keeps one order with other lanes.
func (b *backlog) ordered() bool { return b.member != nil }

// holdBack must be called while no message can be sent. If the backlog is closed, holdBack opens it, and joins the
// order with other lanes.
func (b *backlog) holdBack() {
	if !b.open {
		b.become(backlog{open: true, member: b.watermark.join(b.wake)})
	}
	b.waitStart = time.Time{}
}

// become opens or closes the backlog. It keeps watermark and wake, and takes all other fields from state.
func (b *backlog) become(state backlog) {
	state.watermark, state.wake = b.watermark, b.wake
	*b = state
}

// gather reports whether a message that was just read must wait on the wheel until the backlog permits sending.
// Lateness is negative if the message is not due yet. If the message is long overdue, gather opens the backlog.
// HasDelay reports whether the lane has a delay.
func (b *backlog) gather(lateness time.Duration, hasDelay bool, now leader.Time, local time.Time) bool {
	if lateness < 0 || !b.open && lateness < backlogLate {
		return false
	}
	switch {
	case !b.open:
		b.become(backlog{open: true, waitStart: local, sendableSince: now})
	case !b.ordered() && hasDelay:
		b.waitStart = local // each overdue message that is read extends the wait
	}
	return true
}

// sendable returns the due time up to which messages may be sent. After wait, or after an event, the caller must call
// sendable again. Full is true if the lane's memory is full.
func (b *backlog) sendable(
	r *reading, f *flights, full bool, now leader.Time, local time.Time,
) (until leader.Time, wait time.Duration) {
	if !b.open {
		return now, forever
	}
	if b.waitStart.IsZero() {
		b.waitStart, b.sendableSince = local, now
	}
	first, ok := f.nextTime()
	b.longOverdue = b.longOverdue || ok && now.Sub(first) >= backlogLate
	sentAll := !b.longOverdue || !ok || first.After(now)
	caughtUp := r.caughtUp(b.sendableSince)
	switch timedOut := !local.Before(b.waitStart.Add(backlogWait)); {
	case caughtUp && (sentAll || timedOut), timedOut && !b.ordered(), timedOut && r.delay == 0:
		b.end()
		return now, forever
	case timedOut:
		b.member.leave()
		b.member, b.waitStart = nil, local
	}
	switch complete, known := r.completeUntil(); {
	case caughtUp || full && b.hasAnswers(f, local):
		until = now
	case known && complete.Before(now):
		until = complete
	}
	if b.ordered() {
		mark := until
		if ok && first.Before(mark) {
			mark = first
		}
		if limit := b.member.advance(mark); limit.Before(until) {
			until = limit
		}
	}
	wait = b.waitStart.Add(backlogWait).Sub(local)
	if !b.fullSince.IsZero() {
		wait = min(wait, b.fullSince.Add(answerWait).Sub(local))
	}
	return until, wait
}

// hasAnswers reports whether a full lane may send further messages: at most half of its messages wait for an answer, or
// answerWait has passed. The lane does not wait a second time for answers that did not come within answerWait.
// Otherwise, a silent target would stop the lane for as long as one of the target's messages is in flight.
func (b *backlog) hasAnswers(f *flights, local time.Time) bool {
	b.slowAnswers = min(b.slowAnswers, f.unanswered)
	if f.unanswered-b.slowAnswers > (f.count-b.slowAnswers)/2 {
		if b.fullSince.IsZero() {
			b.fullSince = local
		}
		if local.Sub(b.fullSince) < answerWait {
			return false
		}
		b.slowAnswers = f.unanswered
	}
	b.fullSince = time.Time{}
	return true
}

// recordSend records that the worker has sent messages. The next wait for answers may take a whole answerWait again.
func (b *backlog) recordSend() { b.fullSince = time.Time{} }

func (b *backlog) end() {
	if b.ordered() {
		b.member.leave()
	}
	b.become(backlog{})
}
