package lane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCursorTakeSubjects: messages of several subjects arrive in random order. Each purge that the cursor returns
// removes only messages that have arrived, and its sequences are those messages that no earlier purge removed. No purge
// has a subject that matches others.
func TestCursorTakeSubjects(t *testing.T) {
	purged := 0
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			type message struct {
				mark             Mark
				subject          string
				arrived, removed bool
			}
			rng := rand.New(rand.NewPCG(seed, 1))
			var c Cursor
			var all []*message // by sequence-1
			var open []*message
			subjects := []string{"x.a", "x.b", "x.*", "x.>", "x.c"}
			for range 5000 {
				purgeable := 0
				for _, s := range c.subjects {
					if s.outOfOrderCount >= minSubject {
						purgeable++
					}
				}
				if c.purgeable != purgeable {
					t.Fatalf("%d subjects count as purgeable, want %d", c.purgeable, purgeable)
				}
				switch r := rng.IntN(100); {
				case r < 55:
					m := &message{subject: subjects[min(rng.IntN(9), 4)]}
					all, open = append(all, m), append(open, m)
					m.mark = c.Begin(uint64(len(all)), m.subject)
				case r < 98 && len(open) > 1:
					n := min(1+rng.IntN(6), len(open)-1)
					if rng.IntN(200) == 0 { // the oldest message usually stays for long
						n = 0
					}
					c.Done(open[n].mark)
					open[n].arrived = true
					open = slices.Delete(open, n, n+1)
				case r == 98:
					for _, p := range c.TakeSubjects(1+rng.IntN(3), 1+rng.IntN(200)) {
						var want []uint64
						for n, m := range all[:p.Below-1] {
							if m.subject != p.Subject {
								continue
							}
							if !m.arrived {
								t.Fatalf("a purge of %s below %d removes message %d, which has not arrived", p.Subject, p.Below, n+1)
							}
							if !m.removed && uint64(n+1) > c.ArrivedThrough() {
								want = append(want, uint64(n+1))
							}
							m.removed = true
						}
						if !slices.Equal(p.Sequences, want) {
							t.Fatalf("a purge of %s below %d has the sequences %v, want %v", p.Subject, p.Below, p.Sequences, want)
						}
						if p.Subject == "x.*" || p.Subject == "x.>" {
							t.Fatalf("a purge of %s, which matches other subjects", p.Subject)
						}
						purged += len(p.Sequences)
						if rng.IntN(4) == 0 { // the purge failed
							c.PutBack(p.Sequences)
							for _, sequence := range p.Sequences {
								all[sequence-1].removed = false
							}
						}
					}
				}
			}
		})
	}
	if purged < 10_000 {
		t.Errorf("only %d messages were purged: the test is too weak", purged)
	}
}

// TestCursorKnowsFewSubjects: the memory for subjects has a bound, and messages that have left the cursor use none.
func TestCursorKnowsFewSubjects(t *testing.T) {
	var c Cursor
	var marks []Mark
	for seq := range uint64(4 * maxSubjects) {
		marks = append(marks, c.Begin(seq+1, fmt.Sprint("x.", seq)))
	}
	if n := len(c.subjects); n != maxSubjects {
		t.Errorf("the cursor knows %d subjects, want %d", n, maxSubjects)
	}
	for _, m := range marks {
		c.Done(m)
	}
	if n := len(c.subjects); n != 0 {
		t.Errorf("the cursor knows %d subjects of messages that have left, want none", n)
	}
}

// TestCursorGivesBackMemory: after a burst, the ring has at most eight slots for each message, or keptSlots.
func TestCursorGivesBackMemory(t *testing.T) {
	var c Cursor
	var marks []Mark
	for seq := range uint64(1 << 20) {
		marks = append(marks, c.Begin(seq+1, "x"))
	}
	for n, m := range marks {
		c.Done(m)
		if span := len(marks) - n - 1; len(c.slots) > max(8*span, keptSlots) {
			t.Fatalf("with %d messages, the ring has %d slots", span, len(c.slots))
		}
	}
	c.check(t, 1<<20, 0, 0)
}
