package deliver

import "time"

// The shares of the window: see "Fairness" in the package documentation. However many groups are silent, they leave
// room. The larger share of a quick group is needed because an eighth is too little to keep a stream busy that answers
// after 10 ms, or core subscribers, whose silence takes 50 ms to establish.
const (
	windowShare = 1
	groupShare  = 8
	parentShare = 4
	quickShare  = 2
)

// group is a set of targets with one share of the window: the targets of one stream, or the targets with the same first
// tokens. A delivery passes its group, then the group's parent, and at last the window, which is the group of all
// targets. At each of them it waits for room, in order.
type group struct {
	parent         *group // nil for the window
	share          int    // while no other group is active, one part in this many of the window
	most, maxBytes int    // set for the window only: the maximum outstanding

	past, pastBytes int         // deliveries that have passed and have no result yet
	waiting         []*delivery // deliveries that have not passed yet, in order
	waitingBytes    int

	pressure  *pressure // nil while there is room
	full      time.Time // when the group, or a part of it, last had no room
	acked     string    // the last subject for which a stream acknowledged
	ackedAt   time.Time // when it did
	forgotten bool      // swept: new deliveries use another group of the same name
}

// window returns the group of all targets.
func (g *group) window() *group {
	for g.parent != nil {
		g = g.parent
	}
	return g
}

// fits reports whether there is room for a delivery. A group that has nothing outstanding has room for any delivery,
// however large.
func (g *group) fits(dl *delivery) bool {
	w, others := g.window(), g.part()-1
	return g.past == 0 ||
		others*(g.past+1) <= w.most-w.past-1 && others*(g.pastBytes+dl.Size) <= w.maxBytes-w.pastBytes-dl.Size
}

// room returns how much of the group may be outstanding, given what is outstanding of the other groups.
func (g *group) room() (messages, bytes int) {
	w := g.window()
	part := g.part()
	return max(1, (w.most-w.past+g.past)/part), max(1, (w.maxBytes-w.pastBytes+g.pastBytes)/part)
}

// part is the share of the group as it is now.
func (g *group) part() int {
	if g.pressure != nil && g.pressure.quick {
		return min(g.share, quickShare)
	}
	return g.share
}

// hasRoom reports whether nothing waits, and at most half of the group's room is taken.
func (g *group) hasRoom() bool {
	most, maxBytes := g.room()
	return len(g.waiting) == 0 && g.past <= most/2 && g.pastBytes <= maxBytes/2
}

// wait appends a delivery to the waiting ones.
func (g *group) wait(dl *delivery) {
	dl.at = g
	g.waiting = append(g.waiting, dl)
	g.waitingBytes += dl.Size
}

// first removes and returns the delivery that has waited longest, if there is room for it. Otherwise it returns nil.
func (g *group) first() *delivery {
	if len(g.waiting) == 0 || !g.fits(g.waiting[0]) {
		return nil
	}
	dl := g.waiting[0]
	g.waiting[0] = nil
	g.waiting = g.waiting[1:]
	g.waitingBytes -= dl.Size
	return dl
}

// take gives a delivery room, and give takes the room back.
func (g *group) take(dl *delivery) { g.past++; g.pastBytes += dl.Size }
func (g *group) give(dl *delivery) { g.past--; g.pastBytes -= dl.Size }
