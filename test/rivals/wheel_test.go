// Package rivals_test compares the broker with other systems that delay messages, and the wheel with other data
// structures for timers. This command measures the wheel:
//
//	go test -run '^$' -bench Wheel -benchtime 200ms ./test/rivals
//
// All data structures get the same random delays, and the times as time.Time. The data structures do not do the same
// work:
//
//   - wheel: package wheel. Entries fire at their exact times and in order.
//   - heap: container/heap. Each item has its index in the heap, so that the benchmark can remove an entry. Items are
//     reused. Entries fire at their exact times and in order.
//   - thw: the hash wheel of nats-server. Its slots are of one second, and the benchmark advances it once a second. So
//     entries fire up to a second late, and not in order. More frequent advances would cost more, because each advance
//     reads a whole slot.
//   - thw1ms: the hash wheel with times multiplied by a thousand, so its slots are of one millisecond. The benchmark
//     advances it once a millisecond.
//   - afterfunc: time.AfterFunc. It depends on the real clock, so the benchmark cannot advance it. Instead, an advance
//     stops the timer that was added first, starts a timer that is due immediately, and waits for its goroutine.
//
// In add+fire, N entries are pending. Their remaining delays are distributed as in a steady stream of entries with
// uniform delays from 0 to 1 s. Each operation adds one entry, and advances the virtual time so that one entry fires on
// average. If fired/op is not about one, as for thw with a million entries, the run was too short to reach the end of a
// slot. Then the time per operation is the time of Add alone.
//
// In add+remove, N entries are pending, and the time does not advance. Each operation adds one entry, and removes in
// turns this entry or an entry that was added long before.
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

// A rival is a data structure for timers. Each entry has a number. All numbers are less than the argument of make.
type rival interface {
	add(due time.Time, n uint32)
	remove(n uint32)
	// advance returns the number of entries that fire until now.
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
	// The average delay is half a second, so one entry fires on average in each step.
	step := time.Second / 2 / time.Duration(pending)
	delays := newDelays()
	// A number is reused after four seconds. An entry fires within one second, or within two seconds from a slot of thw.
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
	for range min(pending, 100_000) { // the memory reaches its final size before the measurement
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
	now := time.Unix(1_000_000, 0)
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

// newDelays returns random delays from 0 to 1 s, the same in each call.
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
	scale int64   // factor from the benchmark's time to the wheel's time
	slot  int64   // number of the last slot to which the wheel was advanced
	due   []int64 // by number
}

func newHashed(entries int, scale int64) rival {
	return &hashed{wheel: thw.NewHashWheel(), scale: scale, due: make([]int64, entries)}
}

// expire is the function that ExpireTasks calls with the current time.
//
//go:linkname expire github.com/nats-io/nats-server/v2/server/thw.(*HashWheel).expireTasks
func expire(w *thw.HashWheel, now int64, fire func(seq uint64, expires int64) bool)

// time returns the time of the wheel. Without the remainder, the product would overflow.
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
	slot := t / int64(time.Second)
	if slot == h.slot {
		return 0
	}
	h.slot = slot
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

// add starts a timer of more than an hour, so that it does not fire. Only the timers that advance starts fire.
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
