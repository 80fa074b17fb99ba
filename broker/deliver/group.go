package deliver

import "time"

// The shares of the window: see "Fairness" in the package documentation. A share s means 1/s of the window. With these
// shares, any number of silent groups leaves room for other groups. A quick group needs its larger share: an eighth is
// not enough to keep a stream busy that answers after 10 ms, or core subscribers, whose silence takes 50 ms to
// establish.
const (
	windowShare = 1
	groupShare  = 8
	parentShare = 4
	quickShare  = 2
)

// group is a set of targets with one share of the window: the targets of one stream, or the targets with the same first
// tokens. A delivery passes its group, then the group's parent, and last the window, which is the group of all targets.
// At each group, deliveries wait for room in order.
type group struct {
	parent                *group // nil for the window
	share                 int    // while no other group is active, the group may have 1/share of the window
	maxMessages, maxBytes int    // set only for the window: the maximum outstanding

	outstanding, outstandingBytes int         // deliveries that have passed and have no result yet
	waiting                       []*delivery // deliveries that have not passed yet, in order
	waitingBytes                  int

	pressure     *pressure // nil while the group is not under pressure
	lastFull     time.Time // when the group, or a part of the group, last had no room
	ackedSubject string    // the last subject for which a stream acknowledged
	ackedAt      time.Time // the time of that acknowledgement
	removed      bool      // by sweep: new deliveries use another group of the same name
}

// window returns the group of all targets.
func (g *group) window() *group {
	for g.parent != nil {
		g = g.parent
	}
	return g
}

// fits reports whether there is room for a delivery. A group without outstanding deliveries has room for a delivery of
// any size.
func (g *group) fits(dl *delivery) bool {
	w, others := g.window(), g.part()-1
	return g.outstanding == 0 || others*(g.outstanding+1) <= w.maxMessages-w.outstanding-1 &&
		others*(g.outstandingBytes+dl.Size) <= w.maxBytes-w.outstandingBytes-dl.Size
}

// room returns the maximum numbers of messages and bytes that the group may have outstanding, given the outstanding
// messages of the other groups.
func (g *group) room() (messages, bytes int) {
	w, part := g.window(), g.part()
	return max(1, (w.maxMessages-w.outstanding+g.outstanding)/part),
		max(1, (w.maxBytes-w.outstandingBytes+g.outstandingBytes)/part)
}

// part returns the present share of the group: 1/part of the window.
func (g *group) part() int {
	if g.pressure != nil && g.pressure.quick {
		return min(g.share, quickShare)
	}
	return g.share
}

// removeIfIdle marks an idle group as removed, and reports whether the group is idle. A group is idle if it has no
// outstanding and no waiting deliveries, and has had room for pressureMemory. A group is at least as busy as its parts,
// so no group is removed before its parts.
func (g *group) removeIfIdle() bool {
	g.removed = g.outstanding == 0 && len(g.waiting) == 0 && time.Since(g.lastFull) >= pressureMemory
	return g.removed
}

// hasRoom reports whether nothing waits, and at most half of the group's room is taken.
func (g *group) hasRoom() bool {
	maxMessages, maxBytes := g.room()
	return len(g.waiting) == 0 && g.outstanding <= maxMessages/2 && g.outstandingBytes <= maxBytes/2
}

// enqueue appends a delivery to the waiting deliveries.
func (g *group) enqueue(dl *delivery) {
	dl.waitGroup = g
	g.waiting = append(g.waiting, dl)
	g.waitingBytes += dl.Size
}

// dequeue removes and returns the delivery that has waited longest, if there is room for it. If there is no room, or no
// delivery waits, dequeue returns nil.
func (g *group) dequeue() *delivery {
	if len(g.waiting) == 0 || !g.fits(g.waiting[0]) {
		return nil
	}
	dl := g.waiting[0]
	g.waiting[0] = nil
	g.waiting = g.waiting[1:]
	g.waitingBytes -= dl.Size
	return dl
}

// reserve counts a delivery as outstanding until release.
func (g *group) reserve(dl *delivery) { g.outstanding++; g.outstandingBytes += dl.Size }
func (g *group) release(dl *delivery) { g.outstanding--; g.outstandingBytes -= dl.Size }
