// Package batch has the queue between the loops of lanes and an observer that is slow, or absent: the stream of the
// journal, or the collector of traces.
//
//	lanes' loops ── Add ──▶ [open batch] ── full, or has waited ──▶ [ready batches] ── Run ──▶ send, one at a time
//	                  └─ no room: dropped, and counted
//
// # Invariants
//
//   - Add waits only for a mutex, which is held while one item is added. No delivery depends on an observer.
//   - The waiting items, with those that send has not released, have a bound.
//   - Each item is sent or counted as dropped, also when Run ends.
//
// # Tried and rejected
//
//   - A channel of items. It copies each item, and the strings of a record are parts of a message, which the channel
//     would keep in memory. A batch encodes its items when they are added, or copies what it needs.
//   - One batch that grows. Its memory moves while the mutex is held, and a loop waits for a copy of several MiB.
package batch
