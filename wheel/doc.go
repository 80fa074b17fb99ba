// Package wheel keeps the values that are due in the next seconds, in order of time.
//
// # The problem
//
// A broker of delayed messages may hold a million messages for the last seconds before they are due. It has to sleep
// until exactly the next due time and must never be early. It delivers messages with the same due time in the order in
// which it added them. Sometimes it removes a message, and after a restart it adds many messages that are already
// overdue. A binary heap does all of this in log n steps, but in a large heap each step misses the processor's caches.
// A timing wheel touches little memory, but its resolution is one tick: the order inside a slot and the earliest due
// time are unknown.
//
// # The design
//
// This wheel combines the two. A point in time, the edge, divides the entries. Entries due up to the edge are in the
// heap or in the run, a sorted list. Entries due after the edge are in the wheel's rings. The edge only moves forward:
//
//	                  edge
//	 late  ╎   run     │  ring 0     ring 1     ring 2            ring 10
//	(heap) ╎ (sorted)  │ 64 × 1 ns  64 × 64 ns  64 × 4 µs   …   16 × 36 years
//	       ╎           │
//	           ◄───────┼──────────────┘ the first slot becomes the run
//	                   │     ◄────────┘ or, if it is crowded, is distributed
//	                                    to the rings below
//
// An entry due after the edge goes into a slot. The wheel treats a time as a number of eleven digits of six bits each.
// The highest digit in which the due time differs from the edge selects the ring, and the value of that digit selects
// the slot. So the first used slot of the lowest used ring holds the earliest entries of all rings, and two bitmaps
// find that slot without a scan. When the run and the heap are empty, that slot is sorted and becomes the new run, and
// the edge moves to the last entry of the run. A crowded slot, one with more than 64 entries, is first distributed to
// the rings below.
//
// An entry that is added with a due time at or before the edge comes too late for the rings, and goes into the heap.
// The next entry is the earlier of the head of the run and the head of the heap.
//
// The values are stored separately, in a slab, which has the handles of all entries in the wheel. The run, the heap and
// the rings hold only items: a due time and a handle. Remove removes the value from the slab, and leaves the item in
// place; the wheel skips the item later. If the items of removed entries then outnumber the other items by more than
// 1024, Remove drops all of them: a sweep. A sweep and a growth of memory take time in proportion to the number of
// entries. A Next or Advance that distributes a crowded slot takes time in proportion to the slot's entries.
//
// # Invariants
//
//  1. All items in the run and the heap are due at or before the edge. All items in the rings are due after the edge.
//  2. The due time of an item in the rings and the present edge determine its slot. After the first slot has been
//     emptied, moving the edge inside that slot does not change the slots of the other items.
//  3. Hence all items of one due time after the edge are in one slot. They are in the order of insertion, because
//     distributing a slot keeps the order, and the rings below the slot were empty before.
//  4. An entry is in the wheel if the slab has its handle. Its item is then in exactly one of run, heap and rings.
//
// # Costs
//
// On average, Add and a step of Advance take constant time. They allocate nothing if the memory of earlier entries
// suffices. The weak point is the heap. After Next has returned a due time that is far away, every added entry with an
// earlier due time goes through the heap, in log n steps.
//
// An entry takes about 40 bytes in addition to its value. A removed entry takes 24 bytes until a sweep or its due time.
// After a burst, the wheel gives the memory back: of the slab, the pages without an entry except one, of the chunks all
// but 256. It keeps no references to values.
//
// # Tried and rejected
//
//   - A tree of rings, without edge and heap, in which each crowded slot has its own ring. The time of every step has a
//     small bound, but each Add has several cache misses. With 100,000 entries, this design takes twice the time of
//     package wheel.
//   - 256 slots in a ring. Items are distributed less often, but the wheel is not faster, and an empty wheel takes
//     three times the memory.
//
// Two designs were not tried. The first is a wheel with ticks: a tick rounds due times up, so even a single timer is
// late. The second is a wheel with slots that are lists, linked through the slab. Such lists would permit immediate
// removal, but the distribution of a linked list has a cache miss at every entry. This wheel reads a slot in chunks of
// twenty items.
package wheel
