package lane

// Cursor records the messages that were read, in order, and which of them have arrived: see "Terms" in the package
// documentation. It uses 16 bytes for each message from the oldest message that has not arrived to the last one read.
//
// It is not safe for concurrent use. The zero Cursor is ready to use.
type Cursor struct {
	marks      []slot // a ring; its length is a power of two
	first      uint64 // number of the oldest mark in the ring
	next       uint64 // number of the next mark
	life       uint32 // number of resets; a mark of an earlier life is ignored
	through    uint64 // all messages up to this sequence have arrived
	outOfOrder int    // number of messages that arrived before an older message, and are still in the lane
	urgent     int    // number of those messages that must be deleted soon
}

// slot is the record of one message.
type slot struct {
	seq   uint64
	state state
}

type state uint8

const (
	open    state = iota
	done          // the message has arrived
	urgent        // the message has arrived, and must be deleted soon
	removed       // the message has arrived, and was deleted from the lane by a separate request
)

// Mark identifies one message between Begin and Done.
type Mark struct {
	number uint64
	life   uint32
}

// Begin records that a message was read. Sequences must rise.
func (c *Cursor) Begin(seq uint64) Mark {
	if c.next-c.first == uint64(len(c.marks)) {
		c.grow()
	}
	m := Mark{number: c.next, life: c.life}
	c.marks[c.next&uint64(len(c.marks)-1)] = slot{seq: seq}
	c.next++
	return m
}

func (c *Cursor) grow() {
	bigger := make([]slot, max(64, 2*len(c.marks)))
	for n := c.first; n < c.next; n++ {
		bigger[n&uint64(len(bigger)-1)] = c.marks[n&uint64(len(c.marks)-1)]
	}
	c.marks = bigger
}

// Void returns a mark that Done ignores, for a message from another history.
func (c *Cursor) Void() Mark { return Mark{life: c.life - 1} }

// Done records that a message has arrived. A mark from before a reset is ignored.
func (c *Cursor) Done(m Mark) { c.end(m, done) }

// DoneUrgent is like Done, for a message that must be deleted soon: to repeat the message after a crash would be
// costly.
func (c *Cursor) DoneUrgent(m Mark) { c.end(m, urgent) }

// end records that a message has arrived, and sets its state to s.
func (c *Cursor) end(m Mark, s state) {
	if m.life != c.life || m.number < c.first {
		return
	}
	if at := c.at(m.number); at.state == open {
		c.count(s, 1)
		at.state = s
	}
	for c.first < c.next && c.at(c.first).state != open {
		c.count(c.at(c.first).state, -1)
		c.through = c.at(c.first).seq
		c.first++
	}
}

// count adds n to the counts of messages that arrived before an older message, for messages in state s.
func (c *Cursor) count(s state, n int) {
	switch s {
	case urgent:
		c.urgent += n
		c.outOfOrder += n
	case done:
		c.outOfOrder += n
	}
}

// ArrivedThrough returns the sequence up to which all messages have arrived, or zero if there is none.
func (c *Cursor) ArrivedThrough() uint64 { return c.through }

// Span returns the number of messages from the oldest message that has not arrived to the last one read.
func (c *Cursor) Span() int { return int(c.next - c.first) }

// OutOfOrder returns the number of messages that arrived before an older message. A purge up to the cursor does not
// remove these messages.
func (c *Cursor) OutOfOrder() int { return c.outOfOrder }

// Urgent returns the number of messages, among those that OutOfOrder counts, that must be deleted soon.
func (c *Cursor) Urgent() int { return c.urgent }

// TakeOutOfOrder returns the sequences of at most limit messages that arrived before an older message. From then on,
// these messages count as deleted from the lane, and are not returned again.
func (c *Cursor) TakeOutOfOrder(limit int) []uint64 { return c.take(min(limit, c.outOfOrder), done) }

// TakeUrgent is like TakeOutOfOrder, for the messages that must be deleted soon.
func (c *Cursor) TakeUrgent(limit int) []uint64 { return c.take(min(limit, c.urgent), urgent) }

// take returns the sequences of count messages that are in state s or urgent, and records these messages as removed.
func (c *Cursor) take(count int, s state) (taken []uint64) {
	for n := c.first; len(taken) < count; n++ {
		if m := c.at(n); m.state == s || m.state == urgent {
			c.count(m.state, -1)
			m.state = removed
			taken = append(taken, m.seq)
		}
	}
	return taken
}

// PutBack undoes TakeOutOfOrder and TakeUrgent for messages that could not be deleted from the lane.
func (c *Cursor) PutBack(sequences []uint64) {
	if len(sequences) == 0 {
		return
	}
	back := make(map[uint64]bool, len(sequences))
	for _, seq := range sequences {
		back[seq] = true
	}
	for n := c.first; n < c.next; n++ {
		if m := c.at(n); m.state == removed && back[m.seq] {
			m.state = done
			c.count(done, 1)
		}
	}
}

// Reset removes all records. It is called when the stream has another history.
func (c *Cursor) Reset() {
	*c = Cursor{life: c.life + 1}
}

func (c *Cursor) at(n uint64) *slot { return &c.marks[n&uint64(len(c.marks)-1)] }
