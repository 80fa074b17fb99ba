package deliver

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Alone, a group may have an eighth of the window outstanding, and the groups of one first token a quarter together. Beside
// others it is as large a part of what these leave: a seventh, or a third, of what is free then. So however many are silent,
// they leave room.
const (
	windowShare = 1
	groupShare  = 8
	parentShare = 4
)

// group is the targets that have a share in common: those of one stream, or of the same first tokens. A delivery passes
// its group, the group that this is part of, and at last the window, which is the group of all; at each it waits for room,
// in order. Groups are guarded by the deliverer's lock.
type group struct {
	parent          *group // nil of the window
	share           int    // the part of the window that may be past it, alone
	most, mostBytes int    // of the window: what may be past it

	past, pastBytes int         // deliveries that passed, and have no result yet
	waiting         []*delivery // those that did not pass
	waitingBytes    int

	pressure  *pressure // nil as long as there is room
	full      time.Time // when there last was none, here or in a part of it
	acked     string    // the subject for which a stream acknowledged last
	ackedAt   time.Time // when it did
	forgotten bool      // new deliveries go another way
}

// groupName is what the deliveries of a group have in common: a stream, or their first tokens.
type groupName struct {
	stream string
	tokens string
	parent bool // of those with one more token, which may be none
}

// groupOfLocked is the group of a subject: that of the stream behind it, as far as it is known, or else of its first two
// tokens, which is part of that of the first. Tokens that are ids make many small groups; their parent keeps them small
// together.
func (d *Deliverer) groupOfLocked(subject string, p *picture) *group {
	if p != nil {
		if h := p.filters.match(subject); h != nil {
			return d.groupLocked(groupName{stream: h.name}, d.window, groupShare)
		}
	}
	first, rest, more := strings.Cut(subject, ".")
	parent := d.groupLocked(groupName{tokens: first, parent: true}, d.window, parentShare)
	if !more {
		return d.groupLocked(groupName{tokens: first}, parent, groupShare)
	}
	second, _, _ := strings.Cut(rest, ".")
	return d.groupLocked(groupName{tokens: subject[:len(first)+1+len(second)]}, parent, groupShare)
}

func (d *Deliverer) groupLocked(name groupName, parent *group, share int) *group {
	g := d.groups[name]
	if g == nil {
		d.sweepGroupsLocked()
		g = &group{parent: parent, share: share}
		d.groups[name] = g
	}
	return g
}

// sweepGroupsLocked forgets those that nothing goes through and nothing is remembered of. What holds a part holds the
// whole, so no group is forgotten before its parts.
func (d *Deliverer) sweepGroupsLocked() {
	if len(d.groups) < max(remember, d.sweepGroups) {
		return
	}
	now := time.Now()
	for name, g := range d.groups {
		if g.past == 0 && len(g.waiting) == 0 && now.Sub(g.full) >= pressureMemory {
			g.forgotten = true
			delete(d.groups, name)
		}
	}
	d.sweepGroups = 2 * len(d.groups)
}

// window is the group that all others are part of.
func (g *group) window() *group {
	for g.parent != nil {
		g = g.parent
	}
	return g
}

// fits reports whether a delivery may pass. One may always, however large.
func (g *group) fits(dl *delivery) bool {
	w, others := g.window(), g.share-1
	return g.past == 0 ||
		others*(g.past+1) <= w.most-w.past-1 && others*(g.pastBytes+dl.Size) <= w.mostBytes-w.pastBytes-dl.Size
}

// room is what may be past a group while the others have what they have.
func (g *group) room() (messages, bytes int) {
	w := g.window()
	return max(1, (w.most-w.past+g.past)/g.share), max(1, (w.mostBytes-w.pastBytes+g.pastBytes)/g.share)
}

// passLocked lets a delivery pass a group and those that it is part of, as far as there is room, and reports whether it
// passed all.
func (d *Deliverer) passLocked(dl *delivery, from *group) bool {
	for g := from; g != nil; g = g.parent {
		if len(g.waiting) > 0 || !g.fits(dl) {
			dl.at = g
			g.waiting = append(g.waiting, dl)
			g.waitingBytes += dl.Size
			d.pressLocked(g)
			return false
		}
		g.past++
		g.pastBytes += dl.Size
	}
	dl.at = nil
	return true
}

// leaveLocked takes back the room of a delivery in the groups that it passed, and lets others have it.
func (d *Deliverer) leaveLocked(dl *delivery) {
	for g := dl.group; g != dl.at; g = g.parent {
		g.past--
		g.pastBytes -= dl.Size
	}
	dl.target.open--
	if dl.at != nil {
		dl.target.unsent--
	}
	d.advanceLocked(dl.group)
}

// advanceLocked lets pass what waits at a group and above it, those who came further first.
func (d *Deliverer) advanceLocked(g *group) {
	if g.parent != nil {
		d.advanceLocked(g.parent)
	}
	for len(g.waiting) > 0 && g.fits(g.waiting[0]) {
		dl := g.waiting[0]
		g.waiting[0] = nil
		g.waiting = g.waiting[1:]
		g.waitingBytes -= dl.Size
		g.past++
		g.pastBytes += dl.Size
		if d.passLocked(dl, g.parent) {
			d.ready = append(d.ready, dl)
		}
	}
}

// takeBackLocked takes some of what waits out of all groups.
func (d *Deliverer) takeBackLocked(which func(*delivery) bool) (back []*delivery) {
	for _, g := range append(slices.Collect(maps.Values(d.groups)), d.window) {
		g.waiting = slices.DeleteFunc(g.waiting, func(dl *delivery) bool {
			taken := which(dl)
			if taken {
				g.waitingBytes -= dl.Size
				back = append(back, dl)
			}
			return taken
		})
	}
	for _, dl := range back {
		d.leaveLocked(dl)
	}
	return back
}
