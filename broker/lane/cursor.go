package lane

// Cursor records the sequence of each message read, and whether the message has arrived: see "Terms" in the package
// documentation. It uses at least 16 bytes for each message from the oldest message that has not arrived to the last
// message read.
//
// It is not safe for concurrent use. The zero Cursor is ready to use.
type Cursor struct {
	slots           []slot // a ring; its length is a power of two
	first           uint64 // number of the oldest slot in the ring
	next            uint64 // number of the next slot
	resets          uint32 // number of calls of Reset
	arrivedThrough  uint64 // all recorded messages up to this sequence have arrived
	outOfOrderCount int    // number of messages that arrived before an older message, and are still in the lane
	urgentCount     int    // number of those out-of-order messages that must be deleted soon
}

// slot is the record of one message.
type slot struct {
	seq    uint64
	state  state
	urgent bool // of a message that has arrived: the message must be deleted soon
}

type state uint8

const (
	stateOpen    state = iota
	stateArrived       // the message has arrived
	stateRemoved       // the message has arrived, and was deleted from the lane by a separate request
)

// Mark identifies one message between Begin and Done.
type Mark struct {
	number uint64
	resets uint32 // Cursor.resets at the time of Begin
}

// Begin records that a message was read. Until the next Reset, each call must have a higher sequence than the call
// before it.
func (c *Cursor) Begin(seq uint64) Mark {
	if c.next-c.first == uint64(len(c.slots)) {
		c.grow()
	}
	m := Mark{number: c.next, resets: c.resets}
	c.slots[c.next&uint64(len(c.slots)-1)] = slot{seq: seq}
	c.next++
	return m
}

func (c *Cursor) grow() {
	slots := make([]slot, max(64, 2*len(c.slots)))
	for n := c.first; n < c.next; n++ {
		slots[n&uint64(len(slots)-1)] = *c.slot(n)
	}
	c.slots = slots
}

// VoidMark returns a mark that Done ignores, for a message that the cursor does not record.
func (c *Cursor) VoidMark() Mark { return Mark{resets: c.resets - 1} }

// Done records that a message has arrived. A mark from before a reset is ignored.
func (c *Cursor) Done(m Mark) { c.end(m, false) }

// DoneUrgent is like Done, for a message that must be deleted soon, because a duplicate after a crash would be costly.
func (c *Cursor) DoneUrgent(m Mark) { c.end(m, true) }

// end records that a message has arrived.
func (c *Cursor) end(m Mark, urgent bool) {
	if m.resets != c.resets || m.number < c.first {
		return
	}
	if slot := c.slot(m.number); slot.state == stateOpen {
		slot.state, slot.urgent = stateArrived, urgent
		c.count(slot, 1)
	}
	for c.first < c.next && c.slot(c.first).state != stateOpen {
		c.count(c.slot(c.first), -1)
		c.arrivedThrough = c.slot(c.first).seq
		c.first++
	}
}

// count adds n to the counts that include the message of a slot.
func (c *Cursor) count(s *slot, n int) {
	if s.state != stateArrived {
		return
	}
	c.outOfOrderCount += n
	if s.urgent {
		c.urgentCount += n
	}
}

// ArrivedThrough returns the sequence up to which all messages have arrived, or zero until the first recorded message
// has arrived.
func (c *Cursor) ArrivedThrough() uint64 { return c.arrivedThrough }

// Span returns the number of messages from the oldest message that has not arrived to the last message read.
func (c *Cursor) Span() int { return int(c.next - c.first) }

// OutOfOrder returns the number of messages that arrived before an older message, and that TakeOutOfOrder and
// TakeUrgent have not returned. A purge up to the cursor does not remove these messages.
func (c *Cursor) OutOfOrder() int { return c.outOfOrderCount }

// Urgent returns the number of messages, among those that OutOfOrder counts, that must be deleted soon.
func (c *Cursor) Urgent() int { return c.urgentCount }

// TakeOutOfOrder returns the sequences of at most limit messages that arrived before an older message. The cursor then
// treats these messages as deleted from the lane, and does not return them again.
func (c *Cursor) TakeOutOfOrder(limit int) []uint64 {
	return c.take(min(limit, c.outOfOrderCount), false)
}

// TakeUrgent is like TakeOutOfOrder, for the messages that must be deleted soon.
func (c *Cursor) TakeUrgent(limit int) []uint64 {
	return c.take(min(limit, c.urgentCount), true)
}

// take returns the sequences of count messages, and records these messages as removed.
func (c *Cursor) take(count int, onlyUrgent bool) (sequences []uint64) {
	for n := c.first; len(sequences) < count; n++ {
		if slot := c.slot(n); slot.state == stateArrived && (slot.urgent || !onlyUrgent) {
			c.count(slot, -1)
			slot.state = stateRemoved
			sequences = append(sequences, slot.seq)
		}
	}
	return sequences
}

// PutBack undoes TakeOutOfOrder and TakeUrgent for messages that could not be deleted from the lane.
func (c *Cursor) PutBack(sequences []uint64) {
	if len(sequences) == 0 {
		return
	}
	returned := make(map[uint64]bool, len(sequences))
	for _, seq := range sequences {
		returned[seq] = true
	}
	for n := c.first; n < c.next; n++ {
		if slot := c.slot(n); slot.state == stateRemoved && returned[slot.seq] {
			slot.state = stateArrived
			c.count(slot, 1)
		}
	}
}

// Reset removes all records. The owner calls Reset when the stream has a new history.
func (c *Cursor) Reset() {
	*c = Cursor{resets: c.resets + 1}
}

func (c *Cursor) slot(n uint64) *slot { return &c.slots[n&uint64(len(c.slots)-1)] }
