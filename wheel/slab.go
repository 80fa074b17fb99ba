package wheel

// A Handle identifies one entry of one wheel. It is comparable, and never identifies another entry, not even one that
// uses the same memory. The zero Handle identifies no entry.
type Handle struct {
	serial uint64 // number of the entry in its wheel, from 1, never reused
	cell   uint32 // index into slab.cells
}

// A slab holds the values of the entries in the wheel.
type slab[V any] struct {
	cells []cell[V]
	free  uint32 // the first free cell, counted from 1; 0 for none
	len   int
	last  uint64 // the last serial given out
}

type cell[V any] struct {
	serial uint64 // 0 in a free cell
	next   uint32 // the next free cell, counted from 1; 0 for none
	value  V      // zero in a free cell, for the garbage collector
}

func (s *slab[V]) add(v V) Handle {
	s.len++
	s.last++
	if s.free == 0 {
		s.cells = append(s.cells, cell[V]{serial: s.last, value: v})
		return Handle{serial: s.last, cell: uint32(len(s.cells) - 1)}
	}
	h := Handle{serial: s.last, cell: s.free - 1}
	c := &s.cells[h.cell]
	s.free = c.next
	*c = cell[V]{serial: h.serial, value: v}
	return h
}

func (s *slab[V]) has(h Handle) bool {
	return h.serial != 0 && int(h.cell) < len(s.cells) && s.cells[h.cell].serial == h.serial
}

// take removes an entry and returns its value, or false if there is no such entry.
func (s *slab[V]) take(h Handle) (v V, ok bool) {
	if !s.has(h) {
		return v, false
	}
	c := &s.cells[h.cell]
	v = c.value
	*c = cell[V]{next: s.free}
	s.free = h.cell + 1
	s.len--
	return v, true
}
