package engine

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestMailboxSignal: Signal has one value after any number of Puts, and none while the mailbox is empty.
func TestMailboxSignal(t *testing.T) {
	m := newMailbox[int]()
	if got := m.take(); len(got) > 0 {
		t.Errorf("an empty mailbox holds %v", got)
	}
	m.Put(1)
	m.Put(2)
	<-m.Signal()
	if got, want := m.take(), []int{1, 2}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
	select {
	case <-m.Signal():
		t.Error("Signal has a value, although the mailbox is empty")
	default:
	}
}

// TestTakenItemsAreValidUntilTheNextTake puts items while the loop still reads the items of the last Take.
func TestTakenItemsAreValidUntilTheNextTake(t *testing.T) {
	m := newMailbox[int]()
	next := 0
	for round := range 20 {
		for range round {
			m.Put(next)
			next++
		}
		taken := m.take()
		for range 3 * round {
			m.Put(-1)
		}
		for i, got := range taken {
			if want := next - round + i; got != want {
				t.Fatalf("round %d: took %v, want %d at %d", round, taken, want, i)
			}
		}
		m.take()
	}
}

// TestMailboxKeepsNoReference: after the next Take, the mailbox keeps no reference to the items of the previous Take.
func TestMailboxKeepsNoReference(t *testing.T) {
	m := newMailbox[*int]()
	for range 100 {
		m.Put(new(int))
	}
	m.take()
	m.take()
	for _, kept := range [][]*int{m.items, m.taken} {
		for _, p := range kept[:cap(kept)] {
			if p != nil {
				t.Fatal("the mailbox keeps an item of the previous Take")
			}
		}
	}
}

// TestMailboxGivesBackMemory: after a burst, the mailbox keeps memory for keptItems items in each of its two slices.
func TestMailboxGivesBackMemory(t *testing.T) {
	m := newMailbox[int]()
	for range 100_000 {
		m.Put(1)
	}
	for range 4 {
		m.Put(1)
		m.take()
	}
	if cap(m.items) > keptItems || cap(m.taken) > keptItems {
		t.Errorf("the mailbox has room for %d and %d items, want %d at most", cap(m.items), cap(m.taken), keptItems)
	}
}

// TestMailboxWithManySenders: with several senders, the mailbox loses no item, keeps each sender's order, and signals
// each item.
func TestMailboxWithManySenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a lost signal is a deadlock, which the bubble reports
		const senders, each = 8, 1000
		m := newMailbox[[2]int]()
		var sending sync.WaitGroup
		for s := range senders {
			sending.Go(func() {
				for i := range each {
					m.Put([2]int{s, i})
				}
			})
		}
		var next [senders]int
		for got := 0; got < senders*each; {
			<-m.Signal()
			for _, item := range m.take() {
				if next[item[0]] != item[1] {
					t.Fatalf("sender %d: item %d, want %d", item[0], item[1], next[item[0]])
				}
				next[item[0]]++
				got++
			}
		}
		sending.Wait()
	})
}
