package deliver

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// groups holds all groups of targets, and the deliveries that wait in them. The deliverer's lock guards it.
type groups struct {
	byName         map[groupName]*group
	window         *group
	sweepAt        int           // the minimum number of groups for the next sweep
	pressureList   []*group      // the groups under pressure
	pressureSignal chan struct{} // capacity 1; gets a value when a group is added to an empty pressureList
	readyQueue     []*delivery   // deliveries that have passed all their groups and are not sent yet, in sending order
}

// groupName identifies a group: by a stream, by the first tokens of its targets, or by the bucket of a limit.
type groupName struct {
	stream string
	tokens string
	parent bool   // the group is the parent of the groups whose first token is tokens
	bucket string // of InProgress
}

func newGroups(messages, bytes int) *groups {
	return &groups{
		byName:         make(map[groupName]*group),
		window:         &group{divisor: windowDivisor, maxMessages: messages, maxBytes: bytes},
		pressureSignal: make(chan struct{}, 1),
	}
}

// group returns the group of a subject. If stream is not empty, the result is the group of that stream. Otherwise the
// result is the group of the subject's first two tokens, below the parent for the first token. If the second token is
// an id, there are many small groups, and the share of their parent bounds them.
func (gs *groups) group(subject, stream string) *group {
	now := time.Now()
	// Not in ensure: there, the sweep for a new group would remove its new parent, which is still idle.
	sweep(gs.byName, &gs.sweepAt, func(g *group) bool { return g.removeIfIdle(now) })
	if stream != "" {
		return gs.ensure(groupName{stream: stream}, gs.window, groupDivisor)
	}
	first, rest, more := strings.Cut(subject, ".")
	parent := gs.ensure(groupName{tokens: first, parent: true}, gs.window, parentDivisor)
	if !more {
		return gs.ensure(groupName{tokens: first}, parent, groupDivisor)
	}
	second, _, _ := strings.Cut(rest, ".")
	return gs.ensure(groupName{tokens: subject[:len(first)+1+len(second)]}, parent, groupDivisor)
}

func (gs *groups) ensure(name groupName, parent *group, divisor int) *group {
	g := gs.byName[name]
	if g == nil {
		name.bucket = strings.Clone(name.bucket) // the bucket may be a part of a message, whose memory must become free
		g = &group{parent: parent, divisor: divisor}
		gs.byName[name] = g
	}
	return g
}

// pass lets a delivery pass g and the groups after g, and reports whether the delivery has passed all of them. At the
// first group that has no room, or where other deliveries wait, the delivery waits.
func (gs *groups) pass(g *group, dl *delivery) bool {
	for ; g != nil; g = dl.after(g) {
		if len(g.queue) > 0 || !g.fits(dl) {
			g.enqueue(dl)
			gs.noteFull(g)
			return false
		}
		g.reserve(dl)
	}
	dl.waitGroup = nil
	return true
}

// remove releases the room of a delivery in the groups that it has passed, and lets waiting deliveries pass.
func (gs *groups) remove(dl *delivery) {
	for g := dl.first(); g != dl.waitGroup; g = dl.after(g) {
		g.release(dl)
	}
	gs.advance(dl.group)
	if dl.limit != nil {
		gs.advance(dl.limit)
	}
}

// advance lets the deliveries that wait at g, or at a parent of g, pass as far as there is room. Deliveries that wait
// at a parent pass first.
func (gs *groups) advance(g *group) {
	if g.parent != nil {
		gs.advance(g.parent)
	}
	for dl := g.dequeue(); dl != nil; dl = g.dequeue() {
		g.reserve(dl)
		if gs.pass(dl.after(g), dl) {
			gs.readyQueue = append(gs.readyQueue, dl)
		}
	}
}

func (gs *groups) next() *delivery {
	if len(gs.readyQueue) == 0 {
		return nil
	}
	dl := gs.readyQueue[0]
	gs.readyQueue[0] = nil
	gs.readyQueue = gs.readyQueue[1:]
	return dl
}

// takeBack removes and returns the waiting deliveries for which match returns true. It takes none from readyQueue.
func (gs *groups) takeBack(match func(*delivery) bool) (returned []*delivery) {
	for _, g := range append(slices.Collect(maps.Values(gs.byName)), gs.window) {
		g.queue = slices.DeleteFunc(g.queue, func(dl *delivery) bool {
			if !match(dl) {
				return false
			}
			g.queueBytes -= dl.Size
			returned = append(returned, dl)
			return true
		})
	}
	for _, dl := range returned {
		gs.remove(dl)
	}
	return returned
}
