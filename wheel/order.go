package wheel

const (
	// A slot with at most maxRun items becomes the run, and is not distributed. With a larger maxRun, the sort would take
	// longer. With a smaller maxRun, items would be distributed more often.
	maxRun = 64

	// A sweep is worth its cost only with more than sweepAbove items of removed entries.
	sweepAbove = 1024
)

// order keeps the items sorted. It holds no values. It keeps the items of removed entries until a pop or a sweep.
type order struct {
	edge   instant
	late   itemHeap // due at or before edge
	run    []item   // due at or before edge, sorted
	popped int      // items of the run already popped
	rings  rings    // due after edge
	len    int
}

type item struct {
	due    instant
	handle Handle
}

// before reports whether an item comes before other: by due time, then by insertion.
func (it *item) before(other *item) bool {
	return it.due < other.due || it.due == other.due && it.handle.serial < other.handle.serial
}

func (o *order) add(it item) {
	o.len++
	if it.due > o.edge {
		o.rings.put(it, o.edge)
	} else {
		o.late.push(it)
	}
}

// peek returns the first item, or nil if there is none. The pointer is valid until the next call of a method.
func (o *order) peek() *item {
	if o.lateFirst() {
		return &o.late[0]
	}
	if o.popped == len(o.run) && !o.refill() {
		return nil
	}
	return &o.run[o.popped]
}

// pop removes the item that peek has just returned.
func (o *order) pop() {
	o.len--
	if o.lateFirst() {
		o.late.pop()
	} else {
		o.popped++
	}
}

func (o *order) lateFirst() bool {
	return len(o.late) > 0 && (o.popped == len(o.run) || o.late[0].before(&o.run[o.popped]))
}

// refill makes the first slot of the rings the run. It returns false if the rings are empty. It may be called only when
// the run and the heap are empty.
func (o *order) refill() bool {
	for {
		s, from, width := o.rings.cutFirst(o.edge)
		if s.len == 0 {
			return false
		}
		// A slot that is one nanosecond wide cannot be distributed. Its items are already in order, so sort only reads them.
		if s.len <= maxRun || width == 1 {
			o.run, o.popped = o.run[:0], 0
			for c := s.head; c != nil; c = o.rings.recycle(c) {
				o.run = append(o.run, c.items[:c.len]...)
			}
			sort(o.run)
			o.edge = o.run[len(o.run)-1].due
			return true
		}
		// An item that is due exactly at this edge stays in the rings only until the next iteration, which makes its slot the
		// run.
		o.edge = from
		for c := s.head; c != nil; c = o.rings.recycle(c) {
			for _, it := range c.items[:c.len] {
				o.rings.put(it, o.edge)
			}
		}
	}
}

// sort sorts by due time and is stable. It takes as many steps as there are pairs in the wrong order.
func sort(items []item) {
	for i, it := range items {
		for ; i > 0 && it.due < items[i-1].due; i-- {
			items[i] = items[i-1]
		}
		items[i] = it
	}
}

// sweep drops every item for which keep returns false.
func (o *order) sweep(keep func(Handle) bool) {
	run := o.run[o.popped:]
	o.run, o.popped = o.run[:0], 0
	for _, it := range run {
		if keep(it.handle) {
			o.run = append(o.run, it)
		}
	}
	// The heap is rebuilt in the same memory. A push never writes to an index that has not been read yet.
	late := o.late
	o.late = o.late[:0]
	for _, it := range late {
		if keep(it.handle) {
			o.late.push(it)
		}
	}
	o.len = len(o.run) + len(o.late) + o.rings.sweep(o.edge, keep)
}
