package deliver

import "time"

// The divisors: a group may take 1/divisor of the part of the window that no other group uses. ParentDivisor is for the
// parent of all groups with the same first token, largeDivisor for fast groups. See "Fairness" in the package
// documentation. A fast group needs the large share. With an eighth, a stream that answers after 10 ms would be idle at
// times, and so would core subscribers, whose silence takes 50 ms to establish.
const (
	windowDivisor = 1
	groupDivisor  = 8
	parentDivisor = 4
	largeDivisor  = 2
)

// group is a set of targets with one share of the window: the targets of one stream, or the targets with the same first
// tokens. A delivery passes its group, then the group's parent, and so on. The last parent is the window, the group of
// all targets. If the delivery has a limit (see InProgress), it first passes the group of the limit. The deliveries
// that wait at a group pass in the order in which they came.
type group struct {
	parent                *group // nil for the window
	limit                 int    // of InProgress: the maximum of outstanding; zero in other groups
	divisor               int    // one of the divisors above
	maxMessages, maxBytes int    // of the window: the maxima of outstanding and outstandingBytes; zero in other groups

	outstanding, outstandingBytes int         // deliveries that have passed and have no result yet
	queue                         []*delivery // deliveries that wait to pass
	queueBytes                    int

	pressure     *pressure // nil while the group is not under pressure
	lastFull     time.Time // when the group, or a group below it, last had no room
	ackedSubject string    // the subject of the latest acknowledgement by a stream
	ackedAt      time.Time // the time of that acknowledgement
	removed      bool      // set by removeIfIdle: a target with this group gets another group of the same name
}

func (g *group) window() *group {
	for g.parent != nil {
		g = g.parent
	}
	return g
}

// fits reports whether a delivery may pass. With the delivery, the group may take at most 1/divisor of the part of the
// window that no other group uses. A group without outstanding deliveries has room for a delivery of any size.
func (g *group) fits(dl *delivery) bool {
	if g.limit > 0 {
		return g.outstanding < g.limit
	}
	w, factor := g.window(), g.presentDivisor()-1
	return g.outstanding == 0 || factor*(g.outstanding+1) <= w.maxMessages-w.outstanding-1 &&
		factor*(g.outstandingBytes+dl.Size) <= w.maxBytes-w.outstandingBytes-dl.Size
}

// room returns the maximum numbers of messages and bytes that the group may have outstanding, given the outstanding
// messages of the other groups.
func (g *group) room() (messages, bytes int) {
	w, divisor := g.window(), g.presentDivisor()
	if g.limit > 0 {
		return g.limit, w.maxBytes
	}
	return max(1, (w.maxMessages-w.outstanding+g.outstanding)/divisor),
		max(1, (w.maxBytes-w.outstandingBytes+g.outstandingBytes)/divisor)
}

func (g *group) presentDivisor() int {
	if g.pressure != nil && g.pressure.largeShare {
		return min(g.divisor, largeDivisor)
	}
	return g.divisor
}

// removeIfIdle marks an idle group as removed, and reports whether the group is idle. A group is idle if it has no
// outstanding and no waiting deliveries, and has had room for pressureMemory. A parent of a busy group is busy
// too, if now is the same for both.
func (g *group) removeIfIdle(now time.Time) bool {
	g.removed = g.outstanding == 0 && len(g.queue) == 0 && now.Sub(g.lastFull) >= pressureMemory
	return g.removed
}

// hasRoom reports whether no delivery waits at the group, and at most half of the group's room is taken.
func (g *group) hasRoom() bool {
	maxMessages, maxBytes := g.room()
	return len(g.queue) == 0 && g.outstanding <= maxMessages/2 && g.outstandingBytes <= maxBytes/2
}

func (g *group) enqueue(dl *delivery) {
	dl.waitGroup = g
	g.queue = append(g.queue, dl)
	g.queueBytes += dl.Size
}

// dequeue removes and returns the delivery that has waited longest, if there is room for it. If there is no room, or no
// delivery waits, dequeue returns nil.
func (g *group) dequeue() *delivery {
	if len(g.queue) == 0 || !g.fits(g.queue[0]) {
		return nil
	}
	dl := g.queue[0]
	g.queue[0] = nil
	g.queue = g.queue[1:]
	g.queueBytes -= dl.Size
	return dl
}

// reserve counts a delivery as outstanding until release.
func (g *group) reserve(dl *delivery) { g.outstanding++; g.outstandingBytes += dl.Size }
func (g *group) release(dl *delivery) { g.outstanding--; g.outstandingBytes -= dl.Size }
