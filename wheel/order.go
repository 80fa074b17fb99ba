package wheel

const (
	// crowd is how many items a slot may hold to become the run as it is. More take longer to sort, fewer are dealt out
	// more often.
	crowd = 64

	// sweepAbove is the number of items of removed entries up to which a sweep is not worth its cost.
	sweepAbove = 1024
)

// order is the order of the items. It holds no values. It keeps the items of removed entries until they are popped or
// swept out.
type order struct {
	edge  instant
	late  late   // due at or before edge
	run   []item // due at or before edge, sorted
	gone  int    // items of the run already popped
	rings rings  // due after edge
	len   int
}

type item struct {
	due    instant
	handle Handle
}

// before is the order of the wheel: by due time, then insertion.
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

// peek returns the first item, which is good until the next call, or nil if there is none.
func (o *order) peek() *item {
	if o.lateFirst() {
		return &o.late[0]
	}
	if o.gone == len(o.run) && !o.refill() {
		return nil
	}
	return &o.run[o.gone]
}

// pop removes the item which peek has just returned.
func (o *order) pop() {
	o.len--
	if o.lateFirst() {
		o.late.pop()
	} else {
		o.gone++
	}
}

func (o *order) lateFirst() bool {
	return len(o.late) > 0 && (o.gone == len(o.run) || o.late[0].before(&o.run[o.gone]))
}

// refill makes the first slot of the rings the run, and returns false if they are empty. It may be called only when
// nothing is left before the edge.
func (o *order) refill() bool {
	for {
		s, from, width := o.rings.cutFirst(o.edge)
		if s.len == 0 {
			return false
		}
		// A slot one nanosecond wide cannot be dealt out, and need not be: its items are in order already, and sort only
		// reads them.
		if s.len <= crowd || width == 1 {
			o.run, o.gone = o.run[:0], 0
			for c := s.head; c != nil; c = o.rings.recycle(c) {
				o.run = append(o.run, c.items[:c.len]...)
			}
			sort(o.run)
			o.edge = o.run[len(o.run)-1].due
			return true
		}
		// One of them may be due at this edge, but not when the loop is done.
		o.edge = from
		for c := s.head; c != nil; c = o.rings.recycle(c) {
			for _, it := range c.items[:c.len] {
				o.rings.put(it, o.edge)
			}
		}
	}
}

// sort sorts by due time and leaves those of one due time as they were. It takes as many steps as there are pairs in
// the wrong order.
func sort(items []item) {
	for i, it := range items {
		for ; i > 0 && it.due < items[i-1].due; i-- {
			items[i] = items[i-1]
		}
		items[i] = it
	}
}

// sweep drops all items but those to keep.
func (o *order) sweep(keep func(Handle) bool) {
	run := o.run[o.gone:]
	o.run, o.gone = o.run[:0], 0
	for _, it := range run {
		if keep(it.handle) {
			o.run = append(o.run, it)
		}
	}
	// A push never overtakes the reading of the same memory.
	late := o.late
	o.late = o.late[:0]
	for _, it := range late {
		if keep(it.handle) {
			o.late.push(it)
		}
	}
	o.len = len(o.run) + len(o.late) + o.rings.sweep(o.edge, keep)
}
