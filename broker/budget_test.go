package broker

import (
	"runtime"
	"testing"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// TestBudget: one lane may take the shared bytes, and each of the other lanes still has its part.
func TestBudget(t *testing.T) {
	const lanes = 4
	b := newBudget(64<<20, lanes)
	woken := make([]int, lanes)
	var accounts []*account
	for i := range lanes {
		accounts = append(accounts, b.open(freeShare, func() { woken[i]++ }))
	}
	if all := b.shared + lanes*b.least; all != 48<<20 || b.least != 6<<20 {
		t.Fatalf("lanes have %d each and share %d, want three quarters of 64 MiB, half of it evenly", b.least, b.shared)
	}
	greedy, modest := accounts[0], accounts[1]
	if greedy.set(int64(b.most()) - 1); !greedy.room() || !greedy.half() {
		t.Error("a byte of two thirds is left, and it has no room")
	}
	if greedy.set(int64(b.most())); greedy.room() {
		t.Error("two thirds of what is shared are taken, and it has room")
	}
	if modest.set(b.least + b.shared/5); !modest.room() {
		t.Error("another lane holds all it may, and nothing of what is shared is left")
	}
	greedy.set(b.least + b.shared) // the last one was large
	if modest.set(b.least - 1); !modest.room() {
		t.Error("a lane has no room in its own part when another holds all that is shared")
	}
	if modest.set(b.least); modest.room() || !modest.half() {
		t.Error("its part is used up and nothing is shared any more, and it has room")
	}
	if greedy.set(b.least + b.shared*63/64); woken[1] != 0 {
		t.Error("a lane is woken for a sixty-fourth of what is shared")
	}
	if greedy.set(b.least + b.shared/2); woken[1] != 1 || woken[2] != 0 {
		t.Errorf("woken %v when half of what is shared is free, want the one that waits", woken)
	}
	if !modest.room() || modest.half() {
		t.Error("half of what is shared is free, and it has no room, or holds much")
	}
	greedy.close()
	if got := b.taken.Load(); got != 0 {
		t.Errorf("%d are taken when the greedy lane is gone, want none", got)
	}
}

// TestBuffersFit: all messages that the readers may have been sent at once fit into the readers' part, and no buffer is
// too small to be of use.
func TestBuffersFit(t *testing.T) {
	for _, tt := range []struct{ total, lanes, want int }{
		{34 << 20, 12, 34 << 20 / 4 / 12 / 3}, // the sidecar's
		{91 << 20, 36, 91 << 20 / 4 / 36 / 3}, // the shared one's
		{1 << 30, 1, mostBuffer},
		{1 << 30, 36, mostAsked / 2 / 36},
		{MinHoldBytes, 67, leastBuffer},
	} {
		if got := newBudget(tt.total, tt.lanes).buffer; got != tt.want {
			t.Errorf("%d bytes for %d lanes: buffers of %d, want %d", tt.total, tt.lanes, got, tt.want)
		}
	}
}

// TestFlightCost compares the bytes that are accounted for a message with those that it takes on the heap.
func TestFlightCost(t *testing.T) {
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ body, headers int }{{0, 0}, {100, 2}, {1000, 20}, {33 << 10, 0}} {
		const count = 1000
		kept := make([]any, 0, 4*count)
		before := heap()
		accounted := 0
		for seq := range uint64(count) {
			s := lane.Stored{
				Sequence: seq + 1, Subject: string([]byte("delay.10s.orders.x")), Data: make([]byte, tt.body),
				Header: map[string][]string{},
			}
			s.Size = len(s.Subject) + tt.body
			for n := range tt.headers {
				name, value := "X-Name-"+string(rune('a'+n)), string(make([]byte, 20))
				s.Header[name] = []string{value}
				s.Size += len(name) + len(value) + 4
			}
			accounted += cost(s)
			f := &flight{Stored: s, size: cost(s)}
			policy := message.Policy{Names: names, MaxDelay: DefaultMaxDelay}
			f.request, f.problem = policy.Parse(message.Incoming{
				Stream: "DELAY_10s", Sequence: s.Sequence, At: s.At, Subject: s.Subject, Header: s.Header,
			})
			kept = append(kept, f, f.request.HopHeader(), f.request.TargetHeader())
		}
		if took := heap() - before; took > accounted {
			t.Errorf("a body of %d with %d headers takes %d bytes, and is accounted with %d",
				tt.body, tt.headers, took/count, accounted/count)
		}
		runtime.KeepAlive(kept)
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
