package broker

import "time"

const (
	// backlogLate is how long overdue a message is that waited out an outage, rather than its turn.
	backlogLate = time.Second
	// backlogMost and backlogWait bound how much of a backlog is put in order, and for how long: what is read in that
	// time goes out before what follows. Reading 4,096 messages takes some 20 ms.
	backlogMost = 4096
	backlogWait = 50 * time.Millisecond
)

// backlog is what was long overdue when it was read. A lane is read in the order of storing, which in the intake is not
// the order of due times, and in a level neither when its leaders' clocks disagree. So after an outage firing begins when
// the lane, or a good part of it, has been read: oldest due first.
type backlog struct {
	held  []*held
	since time.Time // local; when the first was read
	more  bool      // the lane holds more to read
}

// gather keeps a message that is long overdue, and reports whether it did.
func (w *worker) gather(h *held, now, local time.Time) bool {
	b := &w.backlog
	b.more = h.Behind > 0
	if h.problem != nil || now.Sub(h.request.When()) < backlogLate {
		return false
	}
	if len(b.held) == 0 {
		b.since = local
	}
	b.held = append(b.held, h)
	return true
}

// release puts the backlog in order, on the wheel, when enough of it was read, and returns how long that may take yet.
func (w *worker) release(local time.Time) time.Duration {
	b := &w.backlog
	if len(b.held) == 0 {
		return forever
	}
	if wait := b.since.Add(backlogWait).Sub(local); wait > 0 && b.more && len(b.held) < backlogMost && !w.full() {
		return wait
	}
	for _, h := range b.held {
		w.wheel.Add(h.request.When(), h)
	}
	b.held = nil
	return forever
}
