package broker

import "time"

const (
	// backlogLate is how long overdue a message is that waited out an outage, rather than its turn.
	backlogLate = time.Second
	// backlogWait is for how long at most what is due is held back for the sake of order: one second for what may come
	// of other lanes or, in the intake, be stored behind. Reading 20,000 messages in forty lanes takes a third of that.
	backlogWait = time.Second
	// answerWait is for how long a full lane waits for the answers of what it sent. Most targets take a few milliseconds;
	// what a silent one was sent would keep the lane full for five seconds.
	answerWait = 250 * time.Millisecond
)

// backlog is what a lane does about order after an outage. What is overdue goes out oldest due first:
//
//   - Within a level or a retry lane strictly, however much there is. A message is due no sooner than a lane's delay after
//     it was stored, so what is due before "stored last, plus the delay" has been read, and only that is sent.
//   - Within the intake, which may hold anything in any order, among all that is read before it is sent: everything there
//     is, as far as it fits into memory (see Config.HoldMessages and HoldBytes) and is read within backlogWait.
//   - Across the lanes that begin together, or come back together from the loss of a connection, and have something long
//     overdue: they are sent in one order to musterStep, for backlogWait; see muster. Later, each lane goes by itself.
//
// Each target gets its messages in this order; what is in flight to several may arrive in another (see muster). Three
// things are as good as what they rest on. Between leaders whose clocks disagree, stamps fall back by as much. Of what
// is sent, a target may refuse some, which then comes after a retry. And what a slow target would not take soon is
// given back, and comes by way of a retry lane.
//
// It opens when a lane begins, when there was a time in which nothing could be sent, and when something is read that is
// long overdue. While it is open, all that is due waits on the wheel, which puts it in order. It closes when the lane is
// read as far as it was overdue, or when the time is up. A lane with nothing long overdue waits for nobody. One that is full
// waits for the answers that make room in it, and not for those that do not come within answerWait.
type backlog struct {
	open     bool
	together bool      // with other lanes
	long     bool      // something was long overdue
	since    time.Time // local; since when it could have been sent; zero while it could not
	began    time.Time // the leader's time then
	waits    time.Time // local; since when the lane is full and waits for answers; zero while it does not
	slow     int       // publishes underway that were waited for in vain
}

// holdBack opens the backlog, if it is not open, together with other lanes: for now nothing can be sent.
func (w *worker) holdBack() {
	if b := &w.backlog; !b.open {
		*b = backlog{open: true, together: true}
		w.muster.join(w)
	}
	w.backlog.since = time.Time{}
}

// gather keeps a message that is due while the backlog is open, and reports whether it did. One that is long overdue
// opens it.
func (w *worker) gather(h *held, now, local time.Time) bool {
	b := &w.backlog
	late := now.Sub(h.request.When())
	if h.problem != nil || late < 0 || !b.open && late < backlogLate {
		return false
	}
	switch {
	case !b.open:
		*b = backlog{open: true, since: local, began: now}
	case !b.together && w.lane.Delay > 0:
		b.since = local // it gets on
	}
	w.wheel.Add(h.request.When(), h)
	return true
}

// send acts on what is due, as far as the backlog allows, and returns how long that may keep something back.
func (w *worker) send(now, local time.Time) time.Duration {
	for {
		until, wait := w.sendable(now, local)
		if sent := w.advance(until, now); !sent || !w.backlog.open {
			return wait
		}
		w.backlog.waits = time.Time{}
	}
}

// sendable returns up to when what is due may be sent, and how long until that may have changed by itself.
func (w *worker) sendable(now, local time.Time) (until time.Time, wait time.Duration) {
	b := &w.backlog
	if !b.open {
		return now, forever
	}
	if b.since.IsZero() {
		b.since, b.began = local, now
	}
	next, any := w.wheel.Next()
	b.long = b.long || any && now.Sub(next) >= backlogLate
	nothing := !b.long || !any || next.After(now)
	switch up := !local.Before(b.since.Add(backlogWait)); {
	case w.caughtUp() && (nothing || up), up && !b.together, up && w.lane.Delay == 0:
		w.endBacklog()
		return now, forever
	case up:
		w.muster.leave(w)
		b.together, b.since = false, local
	}
	until = w.settled(now, local)
	if b.together {
		mark := until
		if any && next.Before(mark) {
			mark = next
		}
		if floor := w.muster.say(w, mark); floor.Before(until) {
			until = floor
		}
	}
	wait = b.since.Add(backlogWait).Sub(local)
	if !b.waits.IsZero() {
		wait = min(wait, b.waits.Add(answerWait).Sub(local))
	}
	return until, wait
}

// settled is up to when all that is due has been read, or now where no more can be read before something is sent.
func (w *worker) settled(now, local time.Time) time.Time {
	if w.caughtUp() || w.full() && w.answered(local) {
		return now
	}
	if w.lane.Delay > 0 && w.last.Sequence > 0 {
		if leaves := w.last.At.Add(w.lane.Delay - lookahead); leaves.Before(now) {
			return leaves
		}
	}
	return time.Time{}
}

// answered reports whether a full lane has had the answers that make room in it: those to half of what it holds, or those
// that come within answerWait. What was waited for in vain is not waited for again, or a silent target would stop the lane
// for as long as anything of it is underway.
func (w *worker) answered(local time.Time) bool {
	b := &w.backlog
	b.slow = min(b.slow, w.underway)
	if w.underway-b.slow > (w.held-b.slow)/2 {
		if b.waits.IsZero() {
			b.waits = local
		}
		if local.Sub(b.waits) < answerWait {
			return false
		}
		b.slow = w.underway
	}
	b.waits = time.Time{}
	return true
}

// caughtUp reports whether everything has been read that was due when the backlog could first be sent.
func (w *worker) caughtUp() bool {
	switch {
	case w.epoch == 0 || w.reader.Live() != w.epoch:
		return false // its stream has not been looked at since
	case w.last.Sequence == 0:
		return w.seen.Messages == 0 || w.seen.LastSeq < w.from
	case w.last.Behind == 0:
		return true
	}
	return !w.last.At.Add(max(0, w.lane.Delay-lookahead)).Before(w.backlog.began)
}

func (w *worker) endBacklog() {
	if w.backlog.together {
		w.muster.leave(w)
	}
	w.backlog = backlog{}
}
