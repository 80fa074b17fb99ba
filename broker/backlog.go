package broker

import "time"

const (
	// backlogLate is how long overdue a message is that waited out an outage, rather than its turn.
	backlogLate = time.Second
	// backlogWait is for how long at most what is due is held back for the sake of order: one second for what may come
	// of other lanes or, in the intake, be stored behind. Reading 20,000 messages in forty lanes takes a third of that.
	backlogWait = time.Second
)

// backlog is what a lane does about order after an outage. What is overdue goes out oldest due first:
//
//   - Within a level or a retry lane strictly, however much there is. A message is due no sooner than a lane's delay after
//     it was stored, so what is due before "stored last, plus the delay" has been read, and only that is sent.
//   - Within the intake, which may hold anything in any order, among all that is read before it is sent: everything there
//     is, as far as it fits into memory (see Config.HoldMessages and HoldBytes) and is read within backlogWait.
//   - Across the lanes that begin together, or come back together from the loss of a connection, and have something long
//     overdue: they are sent in one order to musterStep, for backlogWait; see muster. What is in flight of several lanes may
//     arrive in another, by less than a second. Later, each lane goes by itself.
//
// Three things are as good as what they rest on. Between leaders whose clocks disagree, stamps fall back by as much. Of what
// is sent, a target may refuse some, which then comes after a retry. And what a slow target would not take soon is given
// back, and comes by way of a retry lane.
//
// It opens when a lane begins, when there was a time in which nothing could be sent, and when something is read that is
// long overdue. While it is open, all that is due waits on the wheel, which puts it in order. It closes when the lane is
// read as far as it was overdue, or when the time is up. A lane with nothing long overdue waits for nobody.
type backlog struct {
	muster *muster
	wake   func() // makes the loop turn; may be called from any goroutine

	open     bool
	together bool       // with other lanes
	long     bool       // something was long overdue
	since    time.Time  // local; since when it could have been sent; zero while it could not
	began    leaderTime // then
}

func newBacklog(m *muster, wake func()) *backlog { return &backlog{muster: m, wake: wake} }

// holdBack opens the backlog, if it is not open, together with other lanes: for now nothing can be sent.
func (b *backlog) holdBack() {
	if !b.open {
		b.begin(backlog{open: true, together: true})
		b.muster.join(b)
	}
	b.since = time.Time{}
}

func (b *backlog) begin(as backlog) {
	as.muster, as.wake = b.muster, b.wake
	*b = as
}

// gather reports whether a message that was just read, and should have left so long ago, is to wait on the wheel until the
// backlog allows it to be sent. One that is long overdue opens the backlog.
func (b *backlog) gather(late time.Duration, level bool, now leaderTime, local time.Time) bool {
	if late < 0 || !b.open && late < backlogLate {
		return false
	}
	switch {
	case !b.open:
		b.begin(backlog{open: true, since: local, began: now})
	case !b.together && level:
		b.since = local // it gets on
	}
	return true
}

// sendable returns up to when what is due may be sent, and how long until that may have changed by itself. Stuck means that
// no more can be read before something is sent.
func (b *backlog) sendable(r *reading, f *flights, stuck bool, now leaderTime, local time.Time) (until leaderTime, wait time.Duration) {
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
	case caughtUp && (nothing || up), up && !b.together, up && r.delay == 0:
		b.end()
		return now, forever
	case up:
		b.muster.leave(b)
		b.together, b.since = false, local
	}
	switch settled, ok := r.settled(); {
	case caughtUp || stuck:
		until = now
	case ok && settled.Before(now):
		until = settled
	}
	if b.together {
		mark := until
		if any && first.Before(mark) {
			mark = first
		}
		if floor := b.muster.say(b, mark); floor.Before(until) {
			until = floor
		}
	}
	return until, b.since.Add(backlogWait).Sub(local)
}

// end closes it.
func (b *backlog) end() {
	if b.together {
		b.muster.leave(b)
	}
	b.begin(backlog{})
}
