package wheel

import (
	"math/bits"
	"testing"
)

// check fails the test if an invariant in doc.go does not hold.
func (w *Wheel[V]) check(t testing.TB) {
	t.Helper()
	o := &w.order
	seen := make(map[Handle]bool)
	items := 0
	count := func(it item) {
		items++
		if !w.slab.has(it.handle) {
			return
		}
		if seen[it.handle] {
			t.Fatalf("two items for %v", it.handle)
		}
		seen[it.handle] = true
	}

	for i, it := range o.run[o.runIndex:] {
		count(it)
		if it.due > o.edge {
			t.Fatalf("run: due %d after the edge %d", it.due, o.edge)
		}
		if i > 0 && it.less(&o.run[o.runIndex+i-1]) {
			t.Fatalf("run: out of order at %d", i)
		}
	}
	for i, it := range o.heap {
		count(it)
		if it.due > o.edge {
			t.Fatalf("heap: due %d after the edge %d", it.due, o.edge)
		}
		if i > 0 && it.less(&o.heap[(i-1)/2]) {
			t.Fatalf("heap: out of order at %d", i)
		}
	}
	for r := range ringCount {
		if got, want := o.rings.usedRings>>r&1 != 0, o.rings.usedSlots[r] != 0; got != want {
			t.Fatalf("ring %d: its bit is %t, want %t", r, got, want)
		}
		for i := range slotCount {
			s := &o.rings.slots[r][i]
			if got, want := o.rings.usedSlots[r]>>i&1 != 0, s.len != 0; got != want {
				t.Fatalf("slot %d of ring %d: its bit is %t, want %t", i, r, got, want)
			}
			if *s != (slot{}) {
				checkSlot(t, s, r, i, o.edge, count)
			}
		}
	}
	free := 0
	for c := o.rings.freeChunks; c != nil; c = c.next {
		free++
	}
	if free != o.rings.freeCount || free > maxFreeChunks {
		t.Fatalf("%d free chunks, want %d, and %d at most", free, o.rings.freeCount, maxFreeChunks)
	}
	if got, want := items, o.len; got != want {
		t.Fatalf("%d items, want %d", got, want)
	}
	if got, want := len(seen), w.Len(); got != want {
		t.Fatalf("%d items of entries, want %d", got, want)
	}
	checkSlab(t, &w.slab)
}

func checkSlot(t testing.TB, s *slot, r, i int, edge instant, count func(item)) {
	t.Helper()
	n := 0
	last := make(map[instant]uint64) // serial, by due time
	for c := s.head; c != nil; c = c.next {
		if c.next == nil && c != s.tail {
			t.Fatalf("slot %d of ring %d: the last chunk is not the tail", i, r)
		}
		for _, it := range c.items[:c.len] {
			count(it)
			n++
			if it.due <= edge {
				t.Fatalf("slot %d of ring %d: due %d, not after the edge %d", i, r, it.due, edge)
			}
			if got, want := (bits.Len64(uint64(it.due^edge))-1)/digitBits, r; got != want {
				t.Fatalf("due %d: in ring %d, want %d", it.due, want, got)
			}
			if got, want := int(it.due>>(r*digitBits)%slotCount), i; got != want {
				t.Fatalf("due %d: in slot %d, want %d", it.due, want, got)
			}
			if it.handle.serial <= last[it.due] {
				t.Fatalf("due %d: not in order of insertion", it.due)
			}
			last[it.due] = it.handle.serial
		}
	}
	if got, want := s.len, n; got != want {
		t.Fatalf("slot %d of ring %d: len %d, want %d", i, r, got, want)
	}
}

func checkSlab[V any](t testing.TB, s *slab[V]) {
	t.Helper()
	total := 0
	for n, p := range s.pages {
		isOpen := s.open[n/wordBits]>>(n%wordBits)&1 != 0
		if isOpen && n/wordBits < s.firstOpen {
			t.Fatalf("page %d has room, and is before the first word %d", n, s.firstOpen)
		}
		if p == nil {
			if !isOpen {
				t.Fatalf("page %d is not in memory, and does not count as one with room", n)
			}
			continue
		}
		checkPage(t, p)
		if p.len == 0 || isOpen != (p.len < pageLen) {
			t.Fatalf("page %d has %d entries, and counts as one with room: %t", n, p.len, isOpen)
		}
		total += p.len
	}
	if s.spare != nil {
		if checkPage(t, s.spare); s.spare.len != 0 {
			t.Fatalf("the spare page has %d entries", s.spare.len)
		}
	}
	if got, want := total, s.len; got != want {
		t.Fatalf("%d cells in use, want %d", got, want)
	}
}

func checkPage[V any](t testing.TB, p *page[V]) {
	t.Helper()
	used, free := 0, 0
	for i := range p.cells {
		if p.cells[i].serial != 0 {
			used++
		}
	}
	for i := p.freeCell; i != 0; i = p.cells[i-1].next {
		free++
	}
	if used != p.len || used+free != pageLen {
		t.Fatalf("a page with %d cells in use and %d in the free list, want %d and %d", used, free, p.len, pageLen-p.len)
	}
}
