// Package wheel keeps the values that are due in the next seconds, in order of time.
//
// # The problem
//
// A broker of delayed messages holds up to a million of them for the last seconds before they are due. It wants to
// sleep until exactly the next one and must never be early. It hands over messages of one instant in the order in which
// they came. Sometimes it takes one back, and at a restart it adds many whose time has passed. A binary heap does all
// that in log n steps, each of which misses the processor's caches once there are many. A timing wheel touches little
// memory, but it knows only its ticks: neither the order inside a slot nor the earliest due time.
//
// # The design
//
// The wheel is both, divided at an edge, which only moves forward:
//
//	                  edge
//	 late  ╎   run     │  ring 0     ring 1     ring 2            ring 10
//	(heap) ╎ (sorted)  │ 64 × 1 ns  64 × 64 ns  64 × 4 µs   …   16 × 36 years
//	       ╎           │
//	           ◄───────┼──────────────┘ the first slot becomes the run
//	                   │     ◄────────┘ or, if it is crowded, is dealt out
//	                                    to the rings below
//
// An entry due after the edge goes into a slot: an instant has eleven digits of six bits, the ring is the first digit
// in which it differs from the edge, the slot is the value of that digit. So the first slot in use of the lowest ring
// in use holds the earliest entries of all rings; two bitmaps lead there without a scan. When the run has been used up,
// that slot is sorted and becomes the new run, and the edge moves to the last entry of it.
//
// An entry due at or before the edge is late for that run. It goes into a heap, and the earlier of the two heads comes
// first.
//
// The values lie apart, in a slab which knows for every handle whether its entry is still in the wheel. Remove takes
// the value out there and leaves its item where it is, to be skipped when its time comes; when more than half of the
// items belong to removed entries, all of those are swept out. That is the only step besides the growth of memory which
// takes a time in proportion to the number of entries; a Next or Advance which meets a crowded slot takes one in
// proportion to that slot.
//
// # Invariants
//
//  1. Everything in the run and the heap is due at or before the edge,
//     everything in the rings after it.
//  2. An item in the rings lies where its due time and the present edge say.
//     Moving the edge inside the first slot, once that has been emptied, leaves
//     this true of all others.
//  3. Hence all items of one due time after the edge lie in one slot, and lie
//     there in the order of insertion: dealing out keeps the order, and nobody
//     can have been put into the lower ring before.
//  4. An entry is in the wheel if the slab has its handle. Its item is then in
//     exactly one of run, heap and rings.
//
// # What it costs
//
// Add and a step of Advance take constant time on average, without allocation once memory has reached its size. The
// weak side is the heap: while the earliest entry is far away and the owner has asked Next for it, every entry added
// before it goes through the heap, in log n steps.
//
// An entry takes some 40 bytes and its value, a removed one 24 until it is swept out. After a burst the wheel keeps its
// memory for the next one, but no reference to a value. To give the memory back, drop the wheel.
//
// # Tried and rejected
//
//   - Rings all the way, without edge and heap: each crowded slot is divided by a ring of its own. A beautiful tree,
//     with a small bound for every step, but each Add waits for several parts of it to come from memory: twice the time
//     with 100,000 entries.
//   - 256 slots in a ring: items are dealt out less often, the wheel is three times the size when empty, and no faster.
//
// Not tried: ticks, which round up, so that a lone timer is late for no reason; and slots as lists linked through the
// slab, for removal at once, since dealing out such a list waits for memory at every entry, and a chunk is read in one
// go.
package wheel
