package deliver

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// groups holds all groups of targets, and the deliveries that wait in them. The deliverer's lock guards it.
type groups struct {
	byName  map[groupName]*group
	window  *group
	sweepAt int           // the number of groups at which idle ones are swept again
	pressed []*group      // the groups with a pressure
	crowded chan struct{} // one slot: pressed is no longer empty
	ready   []*delivery   // deliveries that have waited and have passed all groups, in the order of sending
}

// groupName identifies a group: by a stream, or by the first tokens of its targets.
type groupName struct {
	stream string
	tokens string
	parent bool // the parent of the groups whose names begin with tokens
}

func newGroups(messages, bytes int) *groups {
	return &groups{
		byName:  make(map[groupName]*group),
		window:  &group{share: windowShare, most: messages, maxBytes: bytes},
		crowded: make(chan struct{}, 1),
	}
}

// of returns the group of a subject. If the stream behind the subject is known, the group is that of the stream. If the
// stream is "", the group is that of the first two tokens, a part of the group of the first token. If a token is an id,
// there are many small groups; their common parent bounds their sum.
func (all *groups) of(subject, stream string) *group {
	if stream != "" {
		return all.named(groupName{stream: stream}, all.window, groupShare)
	}
	first, rest, more := strings.Cut(subject, ".")
	parent := all.named(groupName{tokens: first, parent: true}, all.window, parentShare)
	if !more {
		return all.named(groupName{tokens: first}, parent, groupShare)
	}
	second, _, _ := strings.Cut(rest, ".")
	return all.named(groupName{tokens: subject[:len(first)+1+len(second)]}, parent, groupShare)
}

func (all *groups) named(name groupName, parent *group, share int) *group {
	g := all.byName[name]
	if g == nil {
		all.sweep()
		g = &group{parent: parent, share: share}
		all.byName[name] = g
	}
	return g
}

// sweep forgets idle groups when there are many. A group is idle if nothing of it is outstanding or waits, and if it
// was last full before pressureMemory. A group is at least as busy as its parts, so no group is forgotten before its
// parts.
func (all *groups) sweep() {
	if len(all.byName) < max(remember, all.sweepAt) {
		return
	}
	now := time.Now()
	for name, g := range all.byName {
		if g.past == 0 && len(g.waiting) == 0 && now.Sub(g.full) >= pressureMemory {
			g.forgotten = true
			delete(all.byName, name)
		}
	}
	all.sweepAt = 2 * len(all.byName)
}

// pass lets a new delivery pass its groups as far as there is room. It reports whether it has passed all of them.
func (all *groups) pass(dl *delivery) bool { return all.passFrom(dl.group, dl) }

func (all *groups) passFrom(g *group, dl *delivery) bool {
	for ; g != nil; g = g.parent {
		if len(g.waiting) > 0 || !g.fits(dl) {
			g.wait(dl)
			all.press(g)
			return false
		}
		g.take(dl)
	}
	dl.at = nil
	return true
}

// leave takes back the room of a delivery in the groups that it has passed, and gives it to deliveries that wait.
func (all *groups) leave(dl *delivery) {
	for g := dl.group; g != dl.at; g = g.parent {
		g.give(dl)
	}
	all.advance(dl.group)
}

// advance lets deliveries pass that wait at a group or above it. Those that are further come first.
func (all *groups) advance(g *group) {
	if g.parent != nil {
		all.advance(g.parent)
	}
	for dl := g.first(); dl != nil; dl = g.first() {
		g.take(dl)
		if all.passFrom(g.parent, dl) {
			all.ready = append(all.ready, dl)
		}
	}
}

// next takes out the delivery to be sent next, or returns nil.
func (all *groups) next() *delivery {
	if len(all.ready) == 0 {
		return nil
	}
	dl := all.ready[0]
	all.ready[0] = nil
	all.ready = all.ready[1:]
	return dl
}

// takeBack removes and returns the waiting deliveries for which which returns true.
func (all *groups) takeBack(which func(*delivery) bool) (back []*delivery) {
	for _, g := range append(slices.Collect(maps.Values(all.byName)), all.window) {
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
		all.leave(dl)
	}
	return back
}
