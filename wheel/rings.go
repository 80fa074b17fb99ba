package wheel

import "math/bits"

const (
	digitBits = 6              // bits of a digit
	slotCount = 1 << digitBits // slots of a ring, one for each bit of a uint64
	ringCount = 11             // enough for all 64 bits of an instant
	chunkLen  = 20             // items of a chunk, which then has 496 bytes

	maxFreeChunks = 256 // further free chunks leave memory
)

// rings hold the items that are due after the edge. Ring 0 is the ring of the lowest digit.
type rings struct {
	usedRings  uint64            // bitmap of the rings with an item
	usedSlots  [ringCount]uint64 // bitmaps of the slots with an item
	slots      [ringCount][slotCount]slot
	freeChunks *chunk
	freeCount  int // length of the list freeChunks
}

// A slot is a list of items. Items of one due time are in order of insertion. The list consists of chunks, so that
// reads are fast. An empty slot has no chunk.
type slot struct {
	head, tail *chunk
	len        int
}

type chunk struct {
	items [chunkLen]item
	len   int
	next  *chunk
}

// put appends an item to its slot. The item's due time must not be before the edge. It is equal to the edge only while
// a slot is distributed.
func (rs *rings) put(it item, edge instant) {
	r := (bits.Len64(uint64(it.due^edge)|1) - 1) / digitBits
	i := it.due >> (r * digitBits) % slotCount
	rs.usedRings |= 1 << r
	rs.usedSlots[r] |= 1 << i
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
	c := rs.freeChunks
	if c == nil {
		c = new(chunk)
	} else {
		rs.freeChunks = c.next
		rs.freeCount--
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

// recycle puts a chunk that has been read on the free list, unless that is long, and returns the chunk after it.
func (rs *rings) recycle(c *chunk) *chunk {
	next := c.next
	if rs.freeCount < maxFreeChunks {
		c.next = rs.freeChunks
		rs.freeChunks = c
		rs.freeCount++
	}
	return next
}

// cutFirst removes the contents of the earliest slot and returns them, with the instant at which the slot begins and
// its width. If the rings are empty, the returned slot is empty.
func (rs *rings) cutFirst(edge instant) (s slot, start, width instant) {
	if rs.usedRings == 0 {
		return slot{}, 0, 0
	}
	r := bits.TrailingZeros64(rs.usedRings)
	i := bits.TrailingZeros64(rs.usedSlots[r])
	width = 1 << (r * digitBits)
	// The higher digits of the slot are those of the edge. The top ring has no higher digits: there, the shift gives 0,
	// and the mask is 0.
	mask := ^(width<<digitBits - 1)
	return rs.cut(r, i), edge&mask | instant(i)*width, width
}

func (rs *rings) cut(r, i int) slot {
	s := rs.slots[r][i]
	rs.slots[r][i] = slot{}
	rs.usedSlots[r] &^= 1 << i
	if rs.usedSlots[r] == 0 {
		rs.usedRings &^= 1 << r
	}
	return s
}

// sweep drops every item for which keep returns false, and returns the number of kept items.
func (rs *rings) sweep(edge instant, keep func(Handle) bool) int {
	n := 0
	for r, slots := range rs.usedSlots {
		for ; slots != 0; slots &= slots - 1 {
			s := rs.cut(r, bits.TrailingZeros64(slots))
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
