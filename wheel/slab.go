package wheel

import "math/bits"

// A Handle identifies one entry of one wheel. It is comparable, and never identifies another entry, not even one that
// uses the same memory. The zero Handle identifies no entry.
type Handle struct {
	serial uint64 // number of the entry in its wheel, from 1, never reused
	cell   uint32 // number of the cell: its page times pageLen, plus its index in the page
}

const (
	pageLen  = 128 // cells of a page
	wordBits = 64  // pages of a word of slab.open
)

// A slab holds the values of the entries in the wheel, in pages. A page without an entry leaves memory, except for one
// spare page. A new entry goes into the first page that has room. So after a burst, the later pages become empty.
type slab[V any] struct {
	pages      []*page[V] // nil for a page that has left memory
	open       []uint64   // bitmap of the pages that have room, or are not in memory
	firstOpen  int        // no word of open before this one has a page
	spare      *page[V]   // an empty page, or nil
	len        int
	lastSerial uint64
}

type page[V any] struct {
	cells    [pageLen]cell[V]
	freeCell uint32 // the first free cell, counted from 1; 0 for none
	len      int    // number of entries
}

type cell[V any] struct {
	serial uint64 // 0 in a free cell
	next   uint32 // the next free cell of the page, counted from 1; 0 for none
	value  V      // zero in a free cell, for the garbage collector
}

func newPage[V any]() *page[V] {
	p := &page[V]{freeCell: 1}
	for i := range pageLen - 1 {
		p.cells[i].next = uint32(i + 2)
	}
	return p
}

func (s *slab[V]) add(v V) Handle {
	n := s.openPage()
	p := s.pages[n]
	i := p.freeCell - 1
	c := &p.cells[i]
	p.freeCell = c.next
	if p.len++; p.freeCell == 0 {
		s.open[n/wordBits] &^= 1 << (n % wordBits)
	}
	s.len++
	s.lastSerial++
	*c = cell[V]{serial: s.lastSerial, value: v}
	return Handle{serial: s.lastSerial, cell: uint32(n)*pageLen + i}
}

// openPage returns the number of the first page that has room. It brings that page into memory.
func (s *slab[V]) openPage() int {
	for ; s.firstOpen < len(s.open); s.firstOpen++ {
		if word := s.open[s.firstOpen]; word != 0 {
			break
		}
	}
	if s.firstOpen == len(s.open) {
		s.pages = append(s.pages, make([]*page[V], wordBits)...)
		s.open = append(s.open, 1<<wordBits-1)
	}
	n := s.firstOpen*wordBits + bits.TrailingZeros64(s.open[s.firstOpen])
	if s.pages[n] == nil {
		if s.pages[n], s.spare = s.spare, nil; s.pages[n] == nil {
			s.pages[n] = newPage[V]()
		}
	}
	return n
}

// cellOf returns the cell of an entry, or nil if there is no such entry.
func (s *slab[V]) cellOf(h Handle) *cell[V] {
	n := int(h.cell / pageLen)
	if h.serial == 0 || n >= len(s.pages) || s.pages[n] == nil {
		return nil
	}
	if c := &s.pages[n].cells[h.cell%pageLen]; c.serial == h.serial {
		return c
	}
	return nil
}

func (s *slab[V]) has(h Handle) bool { return s.cellOf(h) != nil }

// take removes an entry and returns its value, or false if there is no such entry.
func (s *slab[V]) take(h Handle) (v V, ok bool) {
	c := s.cellOf(h)
	if c == nil {
		return v, false
	}
	n := int(h.cell / pageLen)
	p := s.pages[n]
	v = c.value
	*c = cell[V]{next: p.freeCell}
	p.freeCell = h.cell%pageLen + 1
	s.len--
	s.open[n/wordBits] |= 1 << (n % wordBits)
	s.firstOpen = min(s.firstOpen, n/wordBits)
	if p.len--; p.len == 0 {
		s.pages[n], s.spare = nil, p
	}
	return v, true
}
