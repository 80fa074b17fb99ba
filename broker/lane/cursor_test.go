package lane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// cursorModel is a simple cursor whose memory grows without bound.
type cursorModel struct {
	seqs    []uint64
	arrived map[uint64]bool
}

func newCursorModel() *cursorModel { return &cursorModel{arrived: make(map[uint64]bool)} }

func (m *cursorModel) arrivedThrough() (seq uint64) {
	for _, s := range m.seqs {
		if !m.arrived[s] {
			return seq
		}
		seq = s
	}
	return seq
}

// span returns the sequences from the oldest message that has not arrived.
func (m *cursorModel) span() []uint64 {
	i := slices.IndexFunc(m.seqs, func(s uint64) bool { return !m.arrived[s] })
	if i < 0 {
		return nil
	}
	return m.seqs[i:]
}

func (m *cursorModel) outOfOrder() (count int) {
	for _, s := range m.span() {
		if m.arrived[s] {
			count++
		}
	}
	return count
}

// TestCursorModel: messages arrive in random order, some twice, with resets in between. After each step the cursor
// agrees with the model.
func TestCursorModel(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var c Cursor
			model := newCursorModel()
			type entry struct {
				seq  uint64
				mark Mark
			}
			var open, stale []entry
			seq := uint64(rng.IntN(3))
			limit := 1 << rng.IntN(8) // maximum number of open messages: below, at and above the length of the ring
			for range 1000 {
				switch r := rng.IntN(100); {
				case r < 50 && len(open) < limit:
					seq += 1 + uint64(rng.IntN(3)) // some sequences were deleted
					open = append(open, entry{seq, c.Begin(seq, "x")})
					model.seqs = append(model.seqs, seq)
				case r < 97 && len(open) > 0:
					i := rng.IntN(len(open))
					if rng.IntN(3) > 0 { // mostly the oldest
						i = 0
					}
					if rng.IntN(3) > 0 {
						c.Done(open[i].mark)
					} else {
						c.DoneUrgent(open[i].mark)
					}
					model.arrived[open[i].seq] = true
					if rng.IntN(10) > 0 {
						open = slices.Delete(open, i, i+1) // otherwise, Done may be called again
					}
				case r == 98 && len(stale) > 0:
					c.Done(stale[rng.IntN(len(stale))].mark)
				case r == 99 && rng.IntN(8) == 0:
					c.Reset()
					stale, open = append(stale, open...), nil
					model = newCursorModel()
					seq = uint64(rng.IntN(3)) // another history begins with a low sequence
				}
				c.check(t, model.arrivedThrough(), len(model.span()), model.outOfOrder())
			}
		})
	}
}

// check compares the cursor with the sequence through which all messages have arrived, its span, and the number of
// messages that are out of order.
func (c *Cursor) check(t *testing.T, through uint64, span, outOfOrder int) {
	t.Helper()
	if c.ArrivedThrough() != through || c.Span() != span || c.OutOfOrder() != outOfOrder {
		t.Fatalf("arrived through %d, span %d, %d out of order; want %d, %d, %d",
			c.ArrivedThrough(), c.Span(), c.OutOfOrder(), through, span, outOfOrder)
	}
}

// TestCursorIgnoresMarksBeforeReset: a mark from before a reset has no effect, even if the mark's number is in use
// again.
func TestCursorIgnoresMarksBeforeReset(t *testing.T) {
	var c Cursor
	stale := c.Begin(1000, "x")
	c.Reset()
	c.Begin(1, "x")
	c.Done(stale)
	c.check(t, 0, 1, 0)
}

// TestCursorRingGrows: the first message arrives only after the ring has grown several times.
func TestCursorRingGrows(t *testing.T) {
	var c Cursor
	// The ring does not start at index 0.
	for seq := range uint64(50) {
		c.Done(c.Begin(seq+1, "x"))
	}
	first := c.Begin(51, "x")
	for seq := uint64(52); seq <= 10_000; seq++ {
		c.Done(c.Begin(seq, "x"))
	}
	c.check(t, 50, 10_000-50, 10_000-51)
	c.Done(first)
	c.check(t, 10_000, 0, 0)
}

// TestCursorTakeUrgent: TakeUrgent returns only the urgent messages, at most limit in a call. After PutBack, an urgent
// message is still urgent.
func TestCursorTakeUrgent(t *testing.T) {
	var c Cursor
	first := c.Begin(1, "x")
	c.DoneUrgent(c.Begin(2, "x"))
	c.Done(c.Begin(3, "x"))
	c.DoneUrgent(c.Begin(4, "x"))
	c.DoneUrgent(c.Begin(5, "x"))
	if got, want := c.TakeUrgent(2), []uint64{2, 4}; !slices.Equal(got, want) || c.Urgent() != 1 || c.OutOfOrder() != 2 {
		t.Errorf("took %d, %d remain urgent, %d out of order; want %d, 1, 2", got, c.Urgent(), c.OutOfOrder(), want)
	}
	got, want := c.TakeOutOfOrder(9), []uint64{3, 5}
	if !slices.Equal(got, want) || c.Urgent() != 0 || c.OutOfOrder() != 0 {
		t.Errorf("then took %d, %d remain urgent, %d out of order; want %d, 0, 0", got, c.Urgent(), c.OutOfOrder(), want)
	}
	c.PutBack([]uint64{3, 5})
	if got, want := c.TakeUrgent(9), []uint64{5}; !slices.Equal(got, want) || c.OutOfOrder() != 1 {
		t.Errorf("after PutBack: took %d as urgent, %d are out of order; want %d and 1", got, c.OutOfOrder(), want)
	}
	c.Done(first)
	c.check(t, 5, 0, 0)
}

// TestCursorTakeOutOfOrder: TakeOutOfOrder returns each message that arrived before an older message once, at most
// limit in a call.
func TestCursorTakeOutOfOrder(t *testing.T) {
	var c Cursor
	first := c.Begin(1, "x")
	c.Done(c.Begin(2, "x"))
	open := c.Begin(3, "x")
	c.Done(c.Begin(4, "x"))
	c.Done(c.Begin(6, "x"))
	if got, want := c.TakeOutOfOrder(2), []uint64{2, 4}; !slices.Equal(got, want) {
		t.Errorf("took %d, want %d", got, want)
	}
	c.check(t, 0, 5, 1)
	c.Done(c.Begin(7, "x"))
	if got, want := c.TakeOutOfOrder(10), []uint64{6, 7}; !slices.Equal(got, want) {
		t.Errorf("then took %d, want %d", got, want)
	}
	if got := c.TakeOutOfOrder(10); got != nil {
		t.Errorf("took %d, which were taken before", got)
	}
	c.Done(first)
	c.check(t, 2, 4, 0)
	c.Done(open)
	c.check(t, 7, 0, 0)
	c.Done(Mark{})
	c.Done(c.VoidMark())
	c.check(t, 7, 0, 0)
}

// TestCursorMemory: the ring does not grow with the number of messages that have arrived.
func TestCursorMemory(t *testing.T) {
	var c Cursor
	for seq := uint64(1); seq <= 100_000; seq += 2 {
		a, b := c.Begin(seq, "x"), c.Begin(seq+1, "x")
		c.Done(b)
		c.Done(a)
	}
	if got, want := len(c.slots), 64; got != want {
		t.Errorf("the ring has %d slots for two messages at a time, want %d", got, want)
	}
}

// TestCursorPutBack: after PutBack, TakeOutOfOrder returns only the messages that were put back, once.
func TestCursorPutBack(t *testing.T) {
	var c Cursor
	var marks []Mark
	for seq := range uint64(10) {
		marks = append(marks, c.Begin(seq+1, "x"))
	}
	for _, m := range marks[1:8] {
		c.Done(m)
	}
	first := c.TakeOutOfOrder(3)
	c.PutBack(first[1:])
	c.check(t, 0, 10, 6)
	if got, want := c.TakeOutOfOrder(10), []uint64{3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("after PutBack: took %v, want %v", got, want)
	}
	c.Done(marks[0])
	c.PutBack(first) // the cursor has passed them
	c.check(t, 8, 2, 0)
}
