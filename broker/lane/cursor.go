package lane

import (
	"hash/maphash"
	"slices"
	"strings"
)

const (
	// keptSlots is the maximum length of a ring that stays in memory while few messages are recorded.
	keptSlots = 1 << 12
	// maxSubjects is the maximum number of subjects that a cursor knows. Messages of further subjects are deleted one by
	// one.
	maxSubjects = 1 << 10
	// minSubject is the minimum number of messages for which TakeSubject returns a subject.
	minSubject = 16
)

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

	seed     maphash.Seed
	subjects map[uint32]*subject // by the hash; at most maxSubjects
	// purgeable is the number of subjects with at least minSubject messages that arrived before an older message.
	purgeable int
}

// slot is the record of one message.
type slot struct {
	seq    uint64
	hash   uint32 // of the subject
	state  state
	urgent bool // of a message that has arrived: the message must be deleted soon
}

// subject is a subject of recorded messages. It has no wildcard, so a purge of it removes no message of another
// subject. If another subject has the same hash, the counts include its messages, and a purge does not remove them.
type subject struct {
	name            string
	slots           int // number of its slots in the ring, since the cursor knows the subject
	outOfOrderCount int
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
func (c *Cursor) Begin(seq uint64, name string) Mark {
	if c.next-c.first == uint64(len(c.slots)) {
		c.resize(max(64, 2*len(c.slots)))
	}
	m, hash := Mark{number: c.next, resets: c.resets}, uint32(maphash.String(c.seed, name))
	c.slots[c.next&uint64(len(c.slots)-1)] = slot{seq: seq, hash: hash}
	c.next++
	if s := c.subjects[hash]; s != nil {
		s.slots++
	} else if len(c.subjects) < maxSubjects && !strings.ContainsAny(name, "*>") {
		c.subjects[hash] = &subject{name: strings.Clone(name), slots: 1}
	}
	return m
}

// resize gives the ring another length, which must be a power of two and have room for all slots in use.
func (c *Cursor) resize(length int) {
	if c.subjects == nil {
		c.seed, c.subjects = maphash.MakeSeed(), make(map[uint32]*subject)
	}
	slots := make([]slot, length)
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
		c.leave(c.slot(c.first).hash)
		c.first++
	}
	if len(c.slots) > keptSlots && c.Span() <= len(c.slots)/8 { // after a burst, the ring gives its memory back
		c.resize(len(c.slots) / 4)
	}
}

// leave records that a slot has left the ring.
func (c *Cursor) leave(hash uint32) {
	if s := c.subjects[hash]; s != nil {
		if s.slots--; s.slots == 0 {
			delete(c.subjects, hash)
			if s.outOfOrderCount >= minSubject { // its messages were recorded before the cursor knew it
				c.purgeable--
			}
		}
	}
}

// count adds n to the counts that include the message of a slot.
func (c *Cursor) count(s *slot, n int) {
	if s.state != stateArrived {
		return
	}
	c.outOfOrderCount += n
	if known := c.subjects[s.hash]; known != nil {
		was := known.outOfOrderCount >= minSubject
		known.outOfOrderCount += n
		if is := known.outOfOrderCount >= minSubject; is != was {
			c.purgeable += n
		}
	}
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

// Purge is a request that removes all messages of one subject below a sequence from the lane.
type Purge struct {
	Subject   string
	Below     uint64
	Sequences []uint64 // of the removed messages above the cursor
}

// TakeSubjects returns purges that each remove some of the messages that arrived before an older message: at most count
// purges, of at most limit messages each. All messages that a purge removes have arrived. The cursor then treats them
// as deleted, like TakeOutOfOrder. TakeSubjects takes the subjects with the most messages first, and leaves out
// subjects with few messages.
func (c *Cursor) TakeSubjects(count, limit int) (purges []Purge) {
	var hashes []uint32
	for hash, s := range c.subjects {
		if s.outOfOrderCount >= minSubject {
			hashes = append(hashes, hash)
		}
	}
	slices.SortFunc(hashes, func(a, b uint32) int {
		return c.subjects[b].outOfOrderCount - c.subjects[a].outOfOrderCount
	})
	for _, hash := range hashes[:min(count, len(hashes))] {
		if p := c.takeSubject(hash, limit); len(p.Sequences) > 0 {
			purges = append(purges, p)
		}
	}
	return purges
}

// HasSubject reports whether TakeSubjects may return a purge.
func (c *Cursor) HasSubject() bool { return c.purgeable > 0 }

// takeSubject takes the messages with a hash up to the first message with that hash that has not arrived.
func (c *Cursor) takeSubject(hash uint32, limit int) Purge {
	p := Purge{Subject: c.subjects[hash].name}
	for n := c.first; n < c.next && len(p.Sequences) < limit; n++ {
		slot := c.slot(n)
		if slot.hash != hash {
			continue
		}
		if slot.state == stateOpen {
			break
		}
		if p.Below = slot.seq + 1; slot.state == stateArrived {
			c.count(slot, -1)
			slot.state = stateRemoved
			p.Sequences = append(p.Sequences, slot.seq)
		}
	}
	return p
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

// PutBack undoes TakeOutOfOrder, TakeSubjects and TakeUrgent for messages that could not be deleted from the lane.
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
