package deliver

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// send adds a delivery for a subject, and reports whether it has passed all groups.
func (gs *groups) send(subject string, size int) (*delivery, bool) {
	dl := &delivery{Message: Message{Target: subject, Size: size}, group: gs.group(subject, "")}
	return dl, gs.pass(dl.group, dl)
}

// TestGroupOfSubject: the subjects of one stream are a group. The subjects without a known stream and with the same
// first two tokens are a group.
func TestGroupOfSubject(t *testing.T) {
	gs := newGroups(800, 800)
	for _, tt := range []struct {
		a, streamOfA, b, streamOfB string
		same, sameParent           bool
	}{
		{a: "shop.eu.1", b: "shop.eu.2.x", same: true, sameParent: true},
		{a: "shop.eu", b: "shop.eu.2", same: true, sameParent: true},
		{a: "shop.eu.1", b: "shop.us.1", sameParent: true},
		{a: "shop", b: "shop.eu", sameParent: true},
		{a: "shop.eu.1", b: "ui.eu.1"},
		{a: "shop.eu.1", streamOfA: "S", b: "ui.x", streamOfB: "S", same: true, sameParent: true},
		{a: "shop.eu.1", streamOfA: "S", b: "shop.eu.1"},
		{a: "shop", streamOfA: "shop", b: "shop"},
	} {
		a, b := gs.group(tt.a, tt.streamOfA), gs.group(tt.b, tt.streamOfB)
		if same, sameParent := a == b, a.parent == b.parent; same != tt.same || sameParent != tt.sameParent {
			t.Errorf("%s of %q and %s of %q: one group %v, one parent %v; want %v, %v",
				tt.a, tt.streamOfA, tt.b, tt.streamOfB, same, sameParent, tt.same, tt.sameParent)
		}
		if a.window() != gs.window || b.window() != gs.window {
			t.Errorf("%s and %s are not part of the window", tt.a, tt.b)
		}
	}
}

// TestSweepKeepsParent: a new group has the same parent as the next group with the same first token, even if the idle
// groups were removed for the first of them.
func TestSweepKeepsParent(t *testing.T) {
	gs := newGroups(64, 1<<20)
	for i := range minSweep {
		dl, _ := gs.send(fmt.Sprintf("%d.x", i), 1)
		if g := gs.group(fmt.Sprintf("%d.y", i), ""); g.parent != dl.group.parent {
			t.Fatalf("the groups %d.x and %d.y have two parents", i, i)
		}
		gs.remove(dl)
	}
}

// TestSweepTime: if the groups of one token become idle during a sweep, the sweep removes all of them or none.
func TestSweepTime(t *testing.T) {
	for i := range 20 {
		gs := newGroups(64, 1<<20)
		for token := range minSweep / 2 {
			gs.group(fmt.Sprintf("%d.x", token), "")
		}
		idleAt := time.Now().Add(time.Duration(i) * 50 * time.Microsecond)
		for _, g := range gs.byName {
			g.lastFull = idleAt.Add(-pressureMemory)
		}
		gs.group("shop.x", "S")
		for name, g := range gs.byName {
			if g.parent.removed {
				t.Fatalf("the parent of %s is removed", name.tokens)
			}
		}
	}
}

// TestGroupsLetPassInOrder: the end of a delivery lets the delivery pass that has waited longest.
func TestGroupsLetPassInOrder(t *testing.T) {
	gs := newGroups(64, 1<<20)
	passed := fill(t, gs, "a.x", 8) // an eighth of the window
	first, _ := gs.send("a.x", 1)
	second, _ := gs.send("a.x", 1)
	if first.waitGroup != first.group || second.waitGroup != second.group {
		t.Fatal("a group with eight outstanding has room for a ninth")
	}
	for i, want := range []*delivery{first, second} {
		if gs.remove(passed[i]); len(gs.readyQueue) != 1 || gs.next() != want {
			t.Errorf("after the end of delivery %d, the first waiting delivery is not ready", i)
		}
	}
	if gs.remove(passed[2]); gs.next() != nil {
		t.Error("there is room, and nothing waits, but a delivery is ready")
	}
}

// TestParentQueueHasPrecedence: a delivery that has already passed its own group gets free room before a delivery that
// still waits in its own group.
func TestParentQueueHasPrecedence(t *testing.T) {
	gs := newGroups(65, 1<<20)
	passed := fill(t, gs, "a.x", 7)
	fill(t, gs, "a.y", 7)
	fill(t, gs, "a.z", 2) // the groups of a token have a quarter of the window together
	atGroup, _ := gs.send("a.x", 1)
	atParent, _ := gs.send("a.w", 1)
	if atGroup.waitGroup != atGroup.group || atParent.waitGroup != atParent.group.parent {
		t.Fatal("one delivery does not wait at its own group, or the other does not wait at the parent")
	}
	if gs.remove(passed[0]); gs.next() != atParent || gs.next() != nil || atGroup.waitGroup != atGroup.group {
		t.Error("the delivery that waits at the parent does not come first")
	}
}

// fill sends deliveries, and fails the test if one of them has no room.
func fill(t *testing.T, gs *groups, subject string, count int) (passed []*delivery) {
	t.Helper()
	for i := range count {
		dl, ok := gs.send(subject, 1)
		if !ok {
			t.Fatalf("%s: there is no room for delivery %d of %d", subject, i+1, count)
		}
		passed = append(passed, dl)
	}
	return passed
}

// TestGroupsBalance sends deliveries of random size to random subjects through a small window, ends them in random
// order, and takes some back. Each group counts exactly the deliveries that have passed it, and the window is not
// exceeded. In the end, no delivery is outstanding or waits.
func TestGroupsBalance(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		gs := newGroups(64, 1<<10)
		var waiting, sent []*delivery
		settle := func() {
			for dl := gs.next(); dl != nil; dl = gs.next() {
				sent = append(sent, dl)
			}
			kept := waiting[:0]
			for _, dl := range waiting {
				if dl.waitGroup != nil {
					kept = append(kept, dl)
				}
			}
			waiting = kept
		}
		for range 2000 {
			switch n := rng.IntN(10); {
			case n < 6:
				dl, ok := gs.send(fmt.Sprintf("%d.%d", rng.IntN(3), rng.IntN(3)), 1+rng.IntN(100))
				if ok {
					sent = append(sent, dl)
				} else {
					waiting = append(waiting, dl)
				}
			case n < 9 && len(sent) > 0:
				i := rng.IntN(len(sent))
				dl := sent[i]
				sent = append(sent[:i], sent[i+1:]...)
				gs.remove(dl)
			case n == 9:
				subject := fmt.Sprintf("%d.%d", rng.IntN(3), rng.IntN(3))
				back := gs.takeBack(func(dl *delivery) bool { return dl.Target == subject })
				for _, dl := range back {
					if dl.Target != subject {
						t.Fatalf("seed %d: %s is taken back, want %s only", seed, dl.Target, subject)
					}
					dl.waitGroup = nil
				}
			}
			settle()
			checkBalance(t, gs, sent, waiting)
		}
		for len(sent) > 0 {
			dl := sent[0]
			sent = sent[1:]
			gs.remove(dl)
			settle()
		}
		if len(waiting) > 0 || gs.window.outstanding != 0 || gs.window.outstandingBytes != 0 {
			t.Errorf("seed %d: %d wait and %d are outstanding at last, want none", seed, len(waiting), gs.window.outstanding)
		}
	}
}

func checkBalance(t *testing.T, gs *groups, sent, waiting []*delivery) {
	t.Helper()
	type sums struct{ outstanding, outstandingBytes, waiting, waitingBytes int }
	want := make(map[*group]sums)
	for _, dl := range append(append([]*delivery(nil), sent...), waiting...) {
		for g := dl.group; g != dl.waitGroup; g = g.parent {
			s := want[g]
			s.outstanding, s.outstandingBytes = s.outstanding+1, s.outstandingBytes+dl.Size
			want[g] = s
		}
		if dl.waitGroup != nil {
			s := want[dl.waitGroup]
			s.waiting, s.waitingBytes = s.waiting+1, s.waitingBytes+dl.Size
			want[dl.waitGroup] = s
		}
	}
	check := func(name any, g *group) {
		got := sums{g.outstanding, g.outstandingBytes, len(g.queue), g.queueBytes}
		if got != want[g] {
			t.Fatalf("%v has %+v, want %+v", name, got, want[g])
		}
		if len(g.queue) > 0 && g.outstanding == 0 {
			t.Fatalf("a delivery waits forever: %v has no outstanding delivery", name)
		}
	}
	for name, g := range gs.byName {
		check(name, g)
	}
	check("the window", gs.window)
	if w := gs.window; w.outstanding > w.maxMessages {
		t.Fatalf("%d are outstanding, want at most %d", w.outstanding, w.maxMessages)
	}
}
