package wheel

// A Handle identifies one entry of one wheel. It is comparable, and never identifies another entry, not even one that
// uses the same memory. The zero Handle identifies no entry.
type Handle struct {
	serial uint64 // number of the entry in its wheel, from 1, never reused
	cell   uint32 // index into slab.cells
}

// A slab holds the values of the entries in the wheel.
type slab[V any] struct {
	cells      []cell[V]
	freeCell   uint32 // the first free cell, counted from 1; 0 for none
	len        int
	lastSerial uint64
}

type cell[V any] struct {
	serial uint64 // 0 in a free cell
	next   uint32 // the next free cell, counted from 1; 0 for none
	value  V      // zero in a free cell, for the garbage collector
}

func (s *slab[V]) add(v V) Handle {
	s.len++
	s.lastSerial++
	if s.freeCell == 0 {
		s.cells = append(s.cells, cell[V]{serial: s.lastSerial, value: v})
		return Handle{serial: s.lastSerial, cell: uint32(len(s.cells) - 1)}
	}
	h := Handle{serial: s.lastSerial, cell: s.freeCell - 1}
	c := &s.cells[h.cell]
	s.freeCell = c.next
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
	*c = cell[V]{next: s.freeCell}
	s.freeCell = h.cell + 1
	s.len--
	return v, true
}
