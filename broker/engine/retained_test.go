package engine

import (
	"runtime"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
)

// TestBurstsGiveMemoryBack: ten of forty lanes have a burst, one after the other. Each fills its part of the memory
// with waiting messages, and delivers all but one. Afterwards, the lanes keep little memory that their accounts do not
// count.
func TestBurstsGiveMemoryBack(t *testing.T) {
	const lanes, bursting = 40, 10
	b := newBudget(config.DefaultHoldBytes, lanes)
	all, cursors := make([]*flights, lanes), make([]lane.Cursor, lanes)
	for n := range all {
		all[n] = newFlights(b.Open(freeShare))
	}
	before := heapBytes()
	now := leader.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for n, f := range all[:bursting] {
		c := &cursors[n]
		charge := func() { f.account.Set(int64(f.bytes + spanCost*c.Span())) }
		for seq := uint64(1); f.account.room(f.reserve()); seq++ {
			m := lane.Message{Sequence: seq, At: now.Stamp(), Subject: "delay.1m.orders.x", Data: make([]byte, 256), Size: 300}
			fl := f.begin(m, c.Begin(seq, m.Subject))
			fl.request.ID, fl.request.Target = "DELAY_1m-1-1732060800000000000", "orders.x"
			fl.request.Due = now.Add(time.Minute).Stamp()
			f.packOrHold(fl, now.Add(time.Minute+time.Duration(seq)), now)
			charge()
		}
		for _, fl := range f.takeDue(now.Add(time.Hour)) {
			f.setOverdue(fl, now, true)
			c.Done(fl.mark)
			f.end(fl)
			if charge(); f.count == 1 {
				break
			}
		}
	}
	kept := heapBytes() - before
	used := 0
	for _, f := range all {
		used += int(f.account.used)
	}
	if most := config.DefaultHoldBytes / 64; kept-used > most {
		t.Errorf("the lanes keep %d bytes, and their accounts count %d, want at most %d more", kept, used, most)
	}
	runtime.KeepAlive(all)
	runtime.KeepAlive(cursors)
}

// heapBytes returns the number of bytes of reachable memory.
func heapBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
