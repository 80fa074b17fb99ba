package lease

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomTable returns a random table of instances, each of which can own every lane.
func randomTable(r *rand.Rand, instances, lanes int) Table {
	t := Table{}.clone()
	var names []string
	for n := range lanes {
		names = append(names, fmt.Sprintf("L%02d", n))
	}
	for n := range instances {
		t.join(fmt.Sprintf("i%d", n), Instance{Lanes: names})
	}
	for _, lane := range names {
		if n := r.IntN(instances + 2); n < instances { // otherwise, the lane is free, or not in the table
			t.claim(lane, fmt.Sprintf("i%d", n))
		} else if n == instances {
			t.free(lane, Cursor{})
		}
	}
	return t
}

func counts(share map[string]string) map[string]int {
	c := make(map[string]int)
	for _, id := range share {
		c[id]++
	}
	return c
}

// moves returns the number of lanes with a present owner that would get another owner.
func moves(t Table, share map[string]string) int {
	n := 0
	for lane, id := range share {
		if owner := t.Lanes[lane].Instance; owner != "" && owner != id {
			n++
		}
	}
	return n
}

// TestSharesAreEven: every lane has an owner. At most maxOwners instances own lanes, and their numbers of lanes differ
// by at most one. The number of moves is the minimum.
func TestSharesAreEven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		instances, lanes, maxOwners := 1+r.IntN(6), r.IntN(30), 1+r.IntN(4)
		w := randomTable(r, instances, lanes)
		share := shares(w, maxOwners)
		if len(share) != lanes {
			t.Fatalf("%d of %d lanes have an owner", len(share), lanes)
		}
		c := counts(share)
		owners := min(instances, maxOwners)
		want := min(owners, lanes)
		if len(c) != want {
			t.Fatalf("%d instances own lanes, want %d: %v", len(c), want, c)
		}
		for id, n := range c {
			if n < lanes/owners || n > (lanes+owners-1)/owners {
				t.Fatalf("%s owns %d of %d lanes among %d", id, n, lanes, owners)
			}
		}
		if got, want := moves(w, share), minMoves(w, lanes, owners); got != want {
			t.Fatalf("%d moves, want %d: %v to %v", got, want, w.Lanes, share)
		}
		if !maps.Equal(share, shares(w.clone(), maxOwners)) {
			t.Fatal("two calls with the same table returned different shares")
		}
	}
}

// minMoves returns the minimum number of moves: the instances with the most lanes keep as many as an even share allows.
func minMoves(t Table, lanes, owners int) int {
	owned := make(map[string]int)
	total := 0
	for _, c := range t.Lanes {
		if c.Instance != "" {
			owned[c.Instance]++
			total++
		}
	}
	kept := 0
	for i, n := range slices.Backward(slices.Sorted(maps.Values(owned))) {
		if rank := len(owned) - 1 - i; rank < owners {
			quota := lanes / owners
			if rank < lanes%owners {
				quota++
			}
			kept += min(n, quota)
		}
	}
	return total - kept
}

// TestSharesSettle: each instance reads the table at its own time and decides about all its lanes, while other
// instances have not yet released the lanes that they decided to release. In any order of these steps, the number of
// moves is the minimum.
func TestSharesSettle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		instances, maxOwners := 1+r.IntN(5), 1+r.IntN(4)
		w := randomTable(r, instances, r.IntN(30))
		want, moved := moves(w, shares(w, maxOwners)), 0
		ending := make(map[string]bool) // lanes that their owners have decided to release
		settled := func() bool {
			share := shares(w, maxOwners)
			return len(ending) == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(share)), func(lane string) bool {
				return w.Lanes[lane].Instance != share[lane]
			})
		}
		for step := 0; !settled(); step++ {
			if step == 10_000 {
				t.Fatal("after 10,000 steps, the shares still change")
			}
			self := fmt.Sprintf("i%d", r.IntN(instances))
			for lane, id := range shares(w, maxOwners) {
				switch owner := w.Lanes[lane].Instance; {
				case owner == self && id != self:
					ending[lane] = true
				case owner == "" && id == self:
					w.claim(lane, self)
				}
			}
			for _, lane := range slices.Sorted(maps.Keys(ending)) {
				if r.IntN(4) == 0 {
					delete(ending, lane)
					w.free(lane, Cursor{})
					moved++
				}
			}
		}
		if moved != want {
			t.Fatalf("%d lanes moved, want %d", moved, want)
		}
	}
}

// TestSharesDuringUpgrade: during an upgrade, not every instance can own every lane. Each lane goes to an instance that
// can own the lane, even to a standby. A lane that no instance can own has no owner.
func TestSharesDuringUpgrade(t *testing.T) {
	w := Table{}.clone()
	w.join("old", Instance{Lanes: []string{"A", "B", "C", "D"}})
	w.join("new", Instance{Lanes: []string{"A", "B", "C", "D", "E"}})
	w.claim("A", "old")
	w.claim("X", "gone")
	got := shares(w, 1)
	if want := map[string]string{"A": "old", "B": "old", "C": "old", "D": "old", "E": "new"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := shares(Table{}, 3); len(got) != 0 {
		t.Errorf("an empty table has the shares %v", got)
	}
}
