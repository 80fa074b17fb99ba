// Package wheel keeps the values that are due in the next seconds, in order of time.
//
// # The problem
//
// A broker of delayed messages holds up to a million of them for the last seconds before they are due. It wants to
// sleep until exactly the next one and must never be early. It delivers messages with the same due time in the order in
// which it added them. Sometimes it removes one, and after a restart it adds many that are already overdue. A binary
// heap does all that in log n steps, but in a large heap each step misses the processor's caches. A timing wheel
// touches little memory, but its resolution is one tick: it knows neither the order inside a slot nor the earliest due
// time.
//
// # The design
//
// This wheel combines the two. An instant, the edge, divides them, and only moves forward:
//
//	                  edge
//	 late  ╎   run     │  ring 0     ring 1     ring 2            ring 10
//	(heap) ╎ (sorted)  │ 64 × 1 ns  64 × 64 ns  64 × 4 µs   …   16 × 36 years
//	       ╎           │
//	           ◄───────┼──────────────┘ the first slot becomes the run
//	                   │     ◄────────┘ or, if it is crowded, is dealt out
//	                                    to the rings below
//
// An entry due after the edge goes into a slot. An instant has eleven digits of six bits. The highest digit in which
// the due time differs from the edge selects the ring, and the value of that digit selects the slot. So the first used
// slot of the lowest used ring holds the earliest entries of all rings, and two bitmaps find it without a scan. When
// the run is used up, that slot is sorted and becomes the new run, and the edge moves to its last entry.
//
// An entry due at or before the edge is too late for the run. It goes into a heap, and the next entry is the earlier
// one of the run's head and the heap's head.
//
// The values are stored separately, in a slab that knows for every handle whether its entry is still in the wheel.
// Remove takes the value out of the slab and leaves the item in place, to be skipped when its time comes. When more
// than half of the items belong to removed entries, a sweep drops those items. The sweep and the growth of memory are
// the only steps that take time in proportion to the number of entries. A Next or Advance that reaches a crowded slot
// takes time in proportion to that slot.
//
// # Invariants
//
//  1. Everything in the run and the heap is due at or before the edge,
//     everything in the rings after it.
//  2. An item in the rings lies where its due time and the present edge say. Once the first slot has been emptied,
//     moving the edge inside it leaves this true of all others.
//  3. Hence all items of one due time after the edge lie in one slot, and lie there in the order of insertion: dealing
//     out keeps the order, and no item can have been put into the lower ring before.
//  4. An entry is in the wheel if the slab has its handle. Its item is then in
//     exactly one of run, heap and rings.
//
// # What it costs
//
// Add and a step of Advance take constant time on average, without allocation once memory has reached its size. The
// weak point is the heap. After Next has returned an earliest entry that is far away, every entry added before that one
// goes through the heap, in log n steps.
//
// An entry takes some 40 bytes and its value. A removed entry takes 24 bytes until it is swept out. After a burst the
// wheel keeps its memory for the next burst, but it keeps no reference to a value. To release the memory, drop the
// wheel.
//
// # Tried and rejected
//
//   - A tree of rings, without edge and heap, in which each crowded slot is divided by a ring of its own. Every step
//     has a small bound, but each Add waits for several parts of the tree to come from memory. With 100,000 entries it
//     takes twice the time.
//   - 256 slots in a ring. Items are dealt out less often, but an empty wheel has three times the size and is no
//     faster.
//
// Two designs were not tried. Ticks round up, so that a lone timer is late for no reason. Slots as lists linked through
// the slab would allow immediate removal, but dealing out such a list waits for memory at every entry, while a chunk is
// read in one go.
package wheel
