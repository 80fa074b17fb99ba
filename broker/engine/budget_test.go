package engine

import "testing"

// TestBudget: one lane may take most of the shared bytes, and each of the other lanes still has its own part.
func TestBudget(t *testing.T) {
	const lanes = 4
	b := newBudget(64<<20, lanes)
	woken := make([]int, lanes)
	var accounts []*account
	for i := range lanes {
		a := b.Open(freeShare)
		a.wake = func() { woken[i]++ }
		accounts = append(accounts, a)
	}
	if all := b.shared + lanes*b.reserved; all != 48<<20 || b.reserved != 6<<20 {
		t.Fatalf("lanes have %d each and share %d, want three quarters of 64 MiB, half of it evenly", b.reserved, b.shared)
	}
	greedy, modest := accounts[0], accounts[1]
	if greedy.Set(int64(b.Max()) - 1); !greedy.room(0) || !greedy.halfUsed() {
		t.Error("a byte of the lane's two thirds is free, and the lane has no room")
	}
	if greedy.Set(int64(b.Max())); greedy.room(0) {
		t.Error("two thirds of the shared bytes are used, and the lane has room")
	}
	if modest.Set(b.reserved + b.shared/5); !modest.room(0) {
		t.Error("one lane holds all that it may hold, and another lane has no room for shared bytes")
	}
	greedy.Set(b.reserved + b.shared) // the last message was large
	if modest.Set(b.reserved - 1); !modest.room(0) {
		t.Error("a lane has no room in its own part while another lane holds all shared bytes")
	}
	if modest.Set(b.reserved); modest.room(0) || !modest.halfUsed() {
		t.Error("the lane's own part and the shared bytes are used up, and the lane has room")
	}
	if greedy.Set(b.reserved + b.shared*63/64); woken[1] != 0 {
		t.Error("a lane is woken for a sixty-fourth of the shared bytes")
	}
	if greedy.Set(b.reserved + b.shared/2); woken[1] != 1 || woken[2] != 0 {
		t.Errorf("woken %v when half of the shared bytes are free, want only the lane that waits", woken)
	}
	if !modest.room(0) || modest.halfUsed() {
		t.Error("half of the shared bytes are free, and the lane has no room, or counts as more than half full")
	}
	greedy.Close()
	if got := b.sharedUsed.Load(); got != 0 {
		t.Errorf("%d shared bytes are in use after the greedy lane has closed, want none", got)
	}
}

// TestBuffersFit: the bytes that all readers together may request fit into the readers' part of the memory, unless that
// part is too small for buffers of minBuffer bytes.
func TestBuffersFit(t *testing.T) {
	for _, tt := range []struct{ total, lanes, want int }{
		{34 << 20, 12, 34 << 20 / 4 / 12 / 3}, // the settings of a sidecar
		{91 << 20, 36, 91 << 20 / 4 / 36 / 3}, // the settings of a shared broker
		{1 << 30, 1, maxBuffer},
		{1 << 30, 36, maxRequested / 2 / 36},
		{8 << 20, 67, minBuffer},
	} {
		if got := newBudget(tt.total, tt.lanes).buffer; got != tt.want {
			t.Errorf("%d bytes for %d lanes: buffers of %d, want %d", tt.total, tt.lanes, got, tt.want)
		}
	}
}
