package wheel

import "math/bits"

const (
	digit    = 6          // bits of an instant that one ring distinguishes
	fanout   = 1 << digit // slots of a ring, one for each bit of a uint64
	levels   = 11         // rings, enough for all 64 bits
	chunkLen = 20         // items of a chunk, which then has 496 bytes
)

// rings hold the items that are due after the edge. An item is in ring r if digit r, counted from the lowest, is the
// highest digit in which its due time differs from the edge. It is in slot i of that ring if the digit is i.
type rings struct {
	used   uint64         // rings with an item
	filled [levels]uint64 // slots with an item
	slots  [levels][fanout]slot
	free   *chunk
}

// A slot is a list of items. Items of one due time are in order of insertion. The list consists of chunks, so that it
// is fast to read and an empty slot needs no memory.
type slot struct {
	head, tail *chunk
	len        int
}

type chunk struct {
	items [chunkLen]item
	len   int
	next  *chunk
}

// put appends the item to its slot. Its due time must not be before the edge.
func (rs *rings) put(it item, edge instant) {
	r := (bits.Len64(uint64(it.due^edge)|1) - 1) / digit
	i := it.due >> (r * digit) % fanout
	rs.used |= 1 << r
	rs.filled[r] |= 1 << i
	s := &rs.slots[r][i]
	c := s.tail
	if c == nil || c.len == chunkLen {
		c = rs.extend(s)
	}
	c.items[c.len] = it
	c.len++
	s.len++
}

func (rs *rings) extend(s *slot) *chunk {
	c := rs.free
	if c == nil {
		c = new(chunk)
	} else {
		rs.free = c.next
		c.len, c.next = 0, nil
	}
	if s.tail == nil {
		s.head = c
	} else {
		s.tail.next = c
	}
	s.tail = c
	return c
}

// recycle puts a chunk that has been read on the free list, and returns the chunk after it.
func (rs *rings) recycle(c *chunk) *chunk {
	next := c.next
	c.next = rs.free
	rs.free = c
	return next
}

// cutFirst removes the contents of the earliest slot and returns them, with the instant at which the slot begins and
// its width. If the rings are empty, the returned slot is empty.
func (rs *rings) cutFirst(edge instant) (s slot, from, width instant) {
	if rs.used == 0 {
		return slot{}, 0, 0
	}
	r := bits.TrailingZeros64(rs.used)
	i := bits.TrailingZeros64(rs.filled[r])
	width = 1 << (r * digit)
	// The higher digits are those of the edge. The top ring has no higher digits: for it, the shift gives 0, and above
	// masks out all bits.
	above := ^(width<<digit - 1)
	return rs.cut(r, i), edge&above | instant(i)*width, width
}

func (rs *rings) cut(r, i int) slot {
	s := rs.slots[r][i]
	rs.slots[r][i] = slot{}
	rs.filled[r] &^= 1 << i
	if rs.filled[r] == 0 {
		rs.used &^= 1 << r
	}
	return s
}

// sweep drops every item for which keep returns false, and returns the number of kept items.
func (rs *rings) sweep(edge instant, keep func(Handle) bool) int {
	n := 0
	for r, filled := range rs.filled {
		for ; filled != 0; filled &= filled - 1 {
			s := rs.cut(r, bits.TrailingZeros64(filled))
			for c := s.head; c != nil; c = rs.recycle(c) {
				for _, it := range c.items[:c.len] {
					if keep(it.handle) {
						rs.put(it, edge)
						n++
					}
				}
			}
		}
	}
	return n
}
