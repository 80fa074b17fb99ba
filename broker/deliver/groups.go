package deliver

import (
	"maps"
	"slices"
	"strings"
)

// groups holds all groups of targets, and the deliveries that wait in them. The deliverer's lock guards it.
type groups struct {
	byName  map[groupName]*group
	window  *group
	sweepAt int           // for sweep of byName
	pressed []*group      // the groups under pressure
	crowded chan struct{} // capacity 1; has a value when pressed is no longer empty
	ready   []*delivery   // deliveries that have waited and have passed all groups, in the order of sending
}

// groupName identifies a group: by a stream, or by the first tokens of its targets.
type groupName struct {
	stream string
	tokens string
	parent bool // this is the parent of the groups whose names begin with tokens
}

func newGroups(messages, bytes int) *groups {
	return &groups{
		byName:  make(map[groupName]*group),
		window:  &group{share: windowShare, maxMessages: messages, maxBytes: bytes},
		crowded: make(chan struct{}, 1),
	}
}

// group returns the group of a subject. Stream is the stream that listens on the subject; it is empty if none is known.
// If stream is not empty, the result is the group of that stream. Otherwise, it is the group of the first two tokens,
// which is a part of the group of the first token. If the second token is an id, there are many small groups, and the
// share of their common parent bounds them all.
func (all *groups) group(subject, stream string) *group {
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
		sweep(all.byName, &all.sweepAt, (*group).removeIfIdle)
		g = &group{parent: parent, share: share}
		all.byName[name] = g
	}
	return g
}

// pass lets a delivery pass g and the parents of g, and reports whether the delivery has passed all of them. At the
// first group without room, the delivery waits.
func (all *groups) pass(g *group, dl *delivery) bool {
	for ; g != nil; g = g.parent {
		if len(g.waiting) > 0 || !g.fits(dl) {
			g.enqueue(dl)
			all.noteFull(g)
			return false
		}
		g.reserve(dl)
	}
	dl.waitGroup = nil
	return true
}

// remove removes a delivery from the groups that it has passed, and gives its room to waiting deliveries.
func (all *groups) remove(dl *delivery) {
	for g := dl.group; g != dl.waitGroup; g = g.parent {
		g.release(dl)
	}
	all.advance(dl.group)
}

// advance lets the deliveries that wait at g, or at a parent of g, pass as far as there is room. Deliveries that wait
// at a parent pass first.
func (all *groups) advance(g *group) {
	if g.parent != nil {
		all.advance(g.parent)
	}
	for dl := g.dequeue(); dl != nil; dl = g.dequeue() {
		g.reserve(dl)
		if all.pass(g.parent, dl) {
			all.ready = append(all.ready, dl)
		}
	}
}

// next removes and returns the next delivery to send, or returns nil.
func (all *groups) next() *delivery {
	if len(all.ready) == 0 {
		return nil
	}
	dl := all.ready[0]
	all.ready[0] = nil
	all.ready = all.ready[1:]
	return dl
}

// takeBack removes and returns the waiting deliveries for which match returns true.
func (all *groups) takeBack(match func(*delivery) bool) (returned []*delivery) {
	for _, g := range append(slices.Collect(maps.Values(all.byName)), all.window) {
		g.waiting = slices.DeleteFunc(g.waiting, func(dl *delivery) bool {
			if !match(dl) {
				return false
			}
			g.waitingBytes -= dl.Size
			returned = append(returned, dl)
			return true
		})
	}
	for _, dl := range returned {
		all.remove(dl)
	}
	return returned
}
