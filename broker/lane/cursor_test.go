package lane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is a simple cursor whose memory is not bounded.
type naive struct {
	seqs []uint64
	done map[uint64]bool
}

func (n *naive) arrived() (seq uint64) {
	for _, s := range n.seqs {
		if !n.done[s] {
			return seq
		}
		seq = s
	}
	return seq
}

// open returns the sequences from the first one whose message has not arrived.
func (n *naive) open() []uint64 {
	i := slices.IndexFunc(n.seqs, func(s uint64) bool { return !n.done[s] })
	if i < 0 {
		return nil
	}
	return n.seqs[i:]
}

func (n *naive) ahead() []uint64 {
	var all []uint64
	for _, s := range n.open() {
		if n.done[s] {
			all = append(all, s)
		}
	}
	return all
}

// TestCursorModel: messages arrive in random order, some twice, with resets in between. After each step the cursor
// agrees with the naive one.
func TestCursorModel(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var c Cursor
			model := naive{done: make(map[uint64]bool)}
			type begun struct {
				seq  uint64
				mark Mark
			}
			var open, stale []begun
			seq := uint64(rng.IntN(3))
			most := 1 << rng.IntN(8) // maximum number of open messages: less than, as many as and more than a ring has
			for range 1000 {
				switch r := rng.IntN(100); {
				case r < 50 && len(open) < most:
					seq += 1 + uint64(rng.IntN(3)) // some sequences were deleted
					open = append(open, begun{seq, c.Begin(seq)})
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
					model.done[open[i].seq] = true
					if rng.IntN(10) > 0 {
						open = slices.Delete(open, i, i+1) // otherwise, Done may be called again
					}
				case r == 98 && len(stale) > 0:
					c.Done(stale[rng.IntN(len(stale))].mark)
				case r == 99 && rng.IntN(8) == 0:
					c.Reset()
					stale, open = append(stale, open...), nil
					model = naive{done: make(map[uint64]bool)}
					seq = uint64(rng.IntN(3)) // another history begins with a low sequence
				}
				if got, want := c.ArrivedThrough(), model.arrived(); got != want {
					t.Fatalf("Arrived = %d, want %d", got, want)
				}
				if got, want := c.Span(), len(model.open()); got != want {
					t.Fatalf("Span = %d, want %d", got, want)
				}
				if got, want := c.OutOfOrder(), len(model.ahead()); got != want {
					t.Fatalf("OutOfOrder = %d, want %d", got, want)
				}
			}
		})
	}
}

// TestCursorMarksOfAFormerLife: a mark from before a reset has no effect, even if its number is in use again.
func TestCursorMarksOfAFormerLife(t *testing.T) {
	var c Cursor
	stale := c.Begin(1000)
	c.Reset()
	c.Begin(1)
	c.Done(stale)
	if got, want := c.ArrivedThrough(), uint64(0); got != want {
		t.Errorf("Arrived = %d after a stale mark, want %d", got, want)
	}
	if got, want := c.Span(), 1; got != want {
		t.Errorf("Span = %d after a stale mark, want %d", got, want)
	}
}

// TestCursorRingGrows: the first message arrives only after the ring has grown several times.
func TestCursorRingGrows(t *testing.T) {
	var c Cursor
	// The ring does not start at index 0.
	for seq := range uint64(50) {
		c.Done(c.Begin(seq + 1))
	}
	first := c.Begin(51)
	for seq := uint64(52); seq <= 10_000; seq++ {
		c.Done(c.Begin(seq))
	}
	if got, want := c.ArrivedThrough(), uint64(50); got != want {
		t.Errorf("Arrived = %d while one is held back, want %d", got, want)
	}
	if got, want := c.OutOfOrder(), 10_000-51; got != want {
		t.Errorf("%d ahead, want %d", got, want)
	}
	c.Done(first)
	if got, want := c.ArrivedThrough(), uint64(10_000); got != want {
		t.Errorf("Arrived = %d, want %d", got, want)
	}
	if got := c.Span(); got != 0 {
		t.Errorf("Span = %d, want 0", got)
	}
	if got := c.OutOfOrder(); got != 0 {
		t.Errorf("%d ahead although everything has arrived", got)
	}
}

// TestCursorTakeUrgent: TakeUrgent returns the urgent messages in parts, and no others.
func TestCursorTakeUrgent(t *testing.T) {
	var c Cursor
	first := c.Begin(1)
	c.DoneUrgent(c.Begin(2))
	c.Done(c.Begin(3))
	c.DoneUrgent(c.Begin(4))
	c.DoneUrgent(c.Begin(5))
	if got, want := c.TakeUrgent(2), []uint64{2, 4}; !slices.Equal(got, want) || c.Urgent() != 1 || c.OutOfOrder() != 2 {
		t.Errorf("took %d, %d are urgent of %d ahead; want %d, 1 of 2", got, c.Urgent(), c.OutOfOrder(), want)
	}
	got, want := c.TakeOutOfOrder(9), []uint64{3, 5}
	if !slices.Equal(got, want) || c.Urgent() != 0 || c.OutOfOrder() != 0 {
		t.Errorf("then took %d, %d are urgent of %d out of order; want %d and none", got, c.Urgent(), c.OutOfOrder(), want)
	}
	c.PutBack([]uint64{5})
	if got := c.TakeUrgent(9); got != nil || c.OutOfOrder() != 1 {
		t.Errorf("a message that was put back is taken as urgent: %d, %d are out of order", got, c.OutOfOrder())
	}
	c.Done(first)
	if c.ArrivedThrough() != 5 || c.OutOfOrder() != 0 {
		t.Errorf("arrived %d, %d ahead; want 5 and none", c.ArrivedThrough(), c.OutOfOrder())
	}
}

// TestCursorTakeOutOfOrder: TakeOutOfOrder returns the messages that arrived before an older message, in parts, each
// once.
func TestCursorTakeOutOfOrder(t *testing.T) {
	var c Cursor
	first := c.Begin(1)
	c.Done(c.Begin(2))
	open := c.Begin(3)
	c.Done(c.Begin(4))
	c.Done(c.Begin(6))
	if got, want := c.TakeOutOfOrder(2), []uint64{2, 4}; !slices.Equal(got, want) {
		t.Errorf("took %d, want %d", got, want)
	}
	if got := c.OutOfOrder(); got != 1 {
		t.Errorf("%d ahead after that, want 1", got)
	}
	c.Done(c.Begin(7))
	if got, want := c.TakeOutOfOrder(10), []uint64{6, 7}; !slices.Equal(got, want) {
		t.Errorf("then took %d, want %d", got, want)
	}
	if got := c.TakeOutOfOrder(10); got != nil {
		t.Errorf("took %d again", got)
	}
	c.Done(first)
	if got, want := c.ArrivedThrough(), uint64(2); got != want {
		t.Errorf("Arrived = %d, want %d", got, want)
	}
	c.Done(open)
	if got, want := c.ArrivedThrough(), uint64(7); got != want {
		t.Errorf("Arrived = %d, want %d", got, want)
	}
	c.Done(Mark{})
	c.Done(c.Void())
	if got := c.Span(); got != 0 {
		t.Errorf("Span = %d, want 0", got)
	}
}

// TestCursorMemory: the ring does not grow with the number of messages that have arrived.
func TestCursorMemory(t *testing.T) {
	var c Cursor
	for seq := uint64(1); seq <= 100_000; seq += 2 {
		a, b := c.Begin(seq), c.Begin(seq+1)
		c.Done(b)
		c.Done(a)
	}
	if got, want := len(c.marks), 64; got != want {
		t.Errorf("the ring has %d places for two messages at a time, want %d", got, want)
	}
}

// TestCursorPutBack: TakeOutOfOrder returns the messages that were put back once more, and no others.
func TestCursorPutBack(t *testing.T) {
	var c Cursor
	var marks []Mark
	for seq := range uint64(10) {
		marks = append(marks, c.Begin(seq+1))
	}
	for _, m := range marks[1:8] {
		c.Done(m)
	}
	first := c.TakeOutOfOrder(3)
	c.PutBack(first[1:])
	if got := c.OutOfOrder(); got != 6 {
		t.Errorf("%d have arrived ahead and are not taken out, want 6", got)
	}
	if got, want := c.TakeOutOfOrder(10), []uint64{3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("taken out again: %v, want %v", got, want)
	}
	c.Done(marks[0])
	c.PutBack(first) // the cursor has passed them
	if c.OutOfOrder() != 0 || c.ArrivedThrough() != 8 {
		t.Errorf("%d ahead, arrived %d; want 0 and 8", c.OutOfOrder(), c.ArrivedThrough())
	}
}
