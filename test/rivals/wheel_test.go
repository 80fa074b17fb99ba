// Package rivals_test measures the wheel against other data structures for the same purpose:
//
//	go test -run '^$' -bench Wheel -benchtime 200ms ./test/rivals
//
// All get the same random numbers, and times as time.Time, because callers have those. Each is used in the way it was
// made for, and they do not do the same work:
//
//   - wheel: exact to the nanosecond, in order, can remove.
//   - heap: container/heap with the index of each item kept, for removal; items
//     are used again. Exact and in order.
//   - thw: the hash wheel of nats-server, with slots of one second as it is. Not
//     in order. It is asked once in a second, which suits it best and makes
//     entries up to a second late; asked for each entry, it would read a whole
//     slot each time.
//   - thw1ms: the same, on a time scaled by a thousand, which gives it slots of a
//     millisecond. It is asked once in a millisecond.
//   - afterfunc: time.AfterFunc. It has a clock of its own, so virtual time
//     cannot drive it: an add+fire stops the pending timer that is replaced and
//     then makes one which is due at once and waits for its goroutine.
//
// In add+fire, N entries are pending, with the ages that a steady stream of delays, uniform in 0..1 s, would give them.
// Each operation adds one entry and advances virtual time so far that, on average, one fires. If fired/op is not about
// one, as with thw and a million entries, the run was too short to reach the end of a slot, and its time is that of
// Add. In add+remove, N entries are pending and time stands still. Each operation adds one entry and removes, in turns,
// that entry or one added long ago.
package rivals_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	_ "unsafe" // for linkname

	"github.com/nats-io/nats-server/v2/server/thw"

	"delaybroker/wheel"
)

var pendings = []int{1_000, 100_000, 1_000_000}

// A rival keeps entries by number, from 0 to twice the number of pending ones.
type rival interface {
	add(due time.Time, n uint32)
	remove(n uint32)
	// advance returns how many entries have fired.
	advance(now time.Time) int
}

var rivals = []struct {
	name string
	make func(entries int) rival
}{
	{"wheel", newOurs},
	{"heap", newIndexed},
	{"thw", func(entries int) rival { return newHashed(entries, 1) }},
	{"thw1ms", func(entries int) rival { return newHashed(entries, 1000) }},
	{"afterfunc", newTimers},
}

func BenchmarkWheelAddFire(b *testing.B) {
	for _, pending := range pendings {
		for _, r := range rivals {
			b.Run(fmt.Sprintf("pending=%d/%s", pending, r.name), func(b *testing.B) {
				benchmarkAddFire(b, pending, r.make)
			})
		}
	}
}

func benchmarkAddFire(b *testing.B, pending int, make func(int) rival) {
	// With a mean delay of half a second.
	step := time.Second / 2 / time.Duration(pending)
	delays := newDelays()
	// Numbers are used again: an entry is gone after one second, or after two with the slots of thw.
	entries := uint32(8 * pending)
	r := make(int(entries))
	now := time.Unix(1_000_000, 0)
	n := uint32(0)
	for ; n < uint32(pending); n++ {
		left := 1 - math.Sqrt(rand.Float64())
		r.add(now.Add(time.Duration(left*float64(time.Second))), n)
	}
	fired := 0
	op := func() {
		r.add(now.Add(delays[n%uint32(len(delays))]), n%entries)
		n++
		now = now.Add(step)
		fired += r.advance(now)
	}
	for range min(pending, 100_000) { // let memory reach its size
		op()
	}
	fired = 0
	b.ReportAllocs()
	for b.Loop() {
		op()
	}
	b.ReportMetric(float64(fired)/float64(b.N), "fired/op")
}

func BenchmarkWheelAddRemove(b *testing.B) {
	for _, pending := range pendings {
		for _, r := range rivals {
			b.Run(fmt.Sprintf("pending=%d/%s", pending, r.name), func(b *testing.B) {
				benchmarkAddRemove(b, pending, r.make)
			})
		}
	}
}

func benchmarkAddRemove(b *testing.B, pending int, make func(int) rival) {
	delays := newDelays()
	r := make(pending + 1)
	// Far in the future of the real clock, too, so that no AfterFunc fires.
	now := time.Now().Add(time.Hour)
	for n := range uint32(pending) {
		r.add(now.Add(delays[n%uint32(len(delays))]), n)
	}
	spare := uint32(pending)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		r.add(now.Add(delays[n%len(delays)]), spare)
		if n%2 == 0 {
			spare = uint32(n * 7919 % (pending + 1))
		}
		r.remove(spare)
		n++
	}
}

func newDelays() []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	delays := make([]time.Duration, 1<<16)
	for i := range delays {
		delays[i] = time.Duration(r.Int64N(int64(time.Second)))
	}
	return delays
}

type ours struct {
	wheel   *wheel.Wheel[uint32]
	handles []wheel.Handle
}

func newOurs(entries int) rival {
	return &ours{wheel.New[uint32](), make([]wheel.Handle, entries)}
}

func (o *ours) add(due time.Time, n uint32) { o.handles[n] = o.wheel.Add(due, n) }
func (o *ours) remove(n uint32)             { o.wheel.Remove(o.handles[n]) }

func (o *ours) advance(now time.Time) int {
	fired := 0
	for range o.wheel.Advance(now) {
		fired++
	}
	return fired
}

type indexed struct {
	items  []*indexedItem // the heap
	byNum  []*indexedItem
	unused []*indexedItem
	serial uint64
}

type indexedItem struct {
	due    int64
	serial uint64
	index  int
	n      uint32
}

func newIndexed(entries int) rival {
	return &indexed{byNum: make([]*indexedItem, entries)}
}

func (h *indexed) Len() int { return len(h.items) }

func (h *indexed) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	return a.due < b.due || a.due == b.due && a.serial < b.serial
}

func (h *indexed) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}

func (h *indexed) Push(x any) {
	it := x.(*indexedItem)
	it.index = len(h.items)
	h.items = append(h.items, it)
}

func (h *indexed) Pop() any {
	last := len(h.items) - 1
	it := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return it
}

func (h *indexed) add(due time.Time, n uint32) {
	var it *indexedItem
	if last := len(h.unused) - 1; last >= 0 {
		it, h.unused = h.unused[last], h.unused[:last]
	} else {
		it = new(indexedItem)
	}
	h.serial++
	*it = indexedItem{due: due.UnixNano(), serial: h.serial, n: n}
	h.byNum[n] = it
	heap.Push(h, it)
}

func (h *indexed) remove(n uint32) {
	h.unused = append(h.unused, heap.Remove(h, h.byNum[n].index).(*indexedItem))
}

func (h *indexed) advance(now time.Time) int {
	fired := 0
	for limit := now.UnixNano(); len(h.items) > 0 && h.items[0].due <= limit; fired++ {
		h.unused = append(h.unused, heap.Pop(h).(*indexedItem))
	}
	return fired
}

type hashed struct {
	wheel *thw.HashWheel
	scale int64 // thw nanoseconds to one of ours
	tick  int64 // last one asked
	due   []int64
}

func newHashed(entries int, scale int64) rival {
	return &hashed{wheel: thw.NewHashWheel(), scale: scale, due: make([]int64, entries)}
}

// expire is what ExpireTasks calls with the current time.
//
//go:linkname expire github.com/nats-io/nats-server/v2/server/thw.(*HashWheel).expireTasks
func expire(w *thw.HashWheel, now int64, fire func(seq uint64, expires int64) bool)

// time is in 1970, so that it can be scaled.
func (h *hashed) time(t time.Time) int64 {
	return (t.UnixNano() % (1000 * int64(time.Hour))) * h.scale
}

func (h *hashed) add(due time.Time, n uint32) {
	h.due[n] = h.time(due)
	if err := h.wheel.Add(uint64(n), h.due[n]); err != nil {
		panic(err)
	}
}

func (h *hashed) remove(n uint32) {
	if err := h.wheel.Remove(uint64(n), h.due[n]); err != nil {
		panic(err)
	}
}

func (h *hashed) advance(now time.Time) int {
	t := h.time(now)
	tick := t / int64(time.Second)
	if tick == h.tick {
		return 0
	}
	h.tick = tick
	fired := 0
	expire(h.wheel, t, func(uint64, int64) bool {
		fired++
		return true
	})
	return fired
}

type timers struct {
	timers []*time.Timer
	fired  chan struct{}
	next   uint32
}

func newTimers(entries int) rival {
	return &timers{timers: make([]*time.Timer, entries), fired: make(chan struct{}, 1)}
}

// add adds an hour to each delay, so that only advance makes timers fire.
func (a *timers) add(due time.Time, n uint32) {
	a.timers[n] = time.AfterFunc(time.Hour+time.Duration(due.Nanosecond()), a.fire)
}

func (a *timers) remove(n uint32) { a.timers[n].Stop() }

func (a *timers) fire() { a.fired <- struct{}{} }

func (a *timers) advance(time.Time) int {
	a.timers[a.next].Stop()
	a.next = (a.next + 1) % uint32(len(a.timers))
	time.AfterFunc(0, a.fire)
	<-a.fired
	return 1
}
