package wheel

const (
	// maxRun is the maximum number of items of a slot that becomes the run; a larger slot is distributed. With a larger
	// maxRun, the sort would take longer. With a smaller maxRun, items would be distributed more often.
	maxRun = 64

	// minSweep is the number of items of removed entries up to which a sweep is not worth its cost.
	minSweep = 1024

	// keptItems is the maximum length of the run's and the heap's memory while they have no items.
	keptItems = 1024
)

// order returns the items in order. It keeps the items of removed entries until a pop or a sweep.
type order struct {
	edge     instant
	heap     itemHeap // due at or before edge
	run      []item   // due at or before edge, sorted
	runIndex int      // index of the next item of run
	rings    rings    // due after edge
	len      int
}

type item struct {
	due    instant
	handle Handle
}

// less reports whether an item comes before other: by due time, then by insertion.
func (it *item) less(other *item) bool {
	return it.due < other.due || it.due == other.due && it.handle.serial < other.handle.serial
}

func (o *order) add(it item) {
	o.len++
	if it.due > o.edge {
		o.rings.put(it, o.edge)
	} else {
		o.heap.push(it)
	}
}

// peek returns the first item, or nil if there is none. The pointer is valid until the next call of a method.
func (o *order) peek() *item {
	if o.heapFirst() {
		return &o.heap[0]
	}
	if o.runIndex == len(o.run) && !o.refill() {
		return nil
	}
	return &o.run[o.runIndex]
}

// pop removes the item that the preceding call of peek returned.
func (o *order) pop() {
	o.len--
	if o.heapFirst() {
		o.heap.pop()
	} else if o.runIndex++; o.runIndex == len(o.run) && cap(o.run) > keptItems {
		o.run, o.runIndex = nil, 0
	}
}

func (o *order) heapFirst() bool {
	return len(o.heap) > 0 && (o.runIndex == len(o.run) || o.heap[0].less(&o.run[o.runIndex]))
}

// refill makes the first slot of the rings the run. It returns false if the rings are empty. The run and the heap must
// be empty.
func (o *order) refill() bool {
	for {
		s, start, width := o.rings.cutFirst(o.edge)
		if s.len == 0 {
			return false
		}
		// A slot that is one nanosecond wide cannot be distributed. Its items are already in order, so sort only reads them.
		if s.len <= maxRun || width == 1 {
			if o.run, o.runIndex = o.run[:0], 0; cap(o.run) > keptItems {
				o.run = make([]item, 0, s.len)
			}
			for c := s.head; c != nil; c = o.rings.recycle(c) {
				o.run = append(o.run, c.items[:c.len]...)
			}
			sort(o.run)
			o.edge = o.run[len(o.run)-1].due
			return true
		}
		// An item that is due exactly at this edge stays in the rings only until the next iteration, which makes its slot the
		// run.
		o.edge = start
		for c := s.head; c != nil; c = o.rings.recycle(c) {
			for _, it := range c.items[:c.len] {
				o.rings.put(it, o.edge)
			}
		}
	}
}

// sort sorts by due time and is stable. It takes one step for each item, and one for each pair in the wrong order.
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
	run := o.run[o.runIndex:]
	o.run, o.runIndex = o.run[:0], 0
	for _, it := range run {
		if keep(it.handle) {
			o.run = append(o.run, it)
		}
	}
	// The heap is rebuilt in the same memory: a push writes only to an index that the loop has read.
	items := o.heap
	o.heap = o.heap[:0]
	for _, it := range items {
		if keep(it.handle) {
			o.heap.push(it)
		}
	}
	o.len = len(o.run) + len(o.heap) + o.rings.sweep(o.edge, keep)
}
