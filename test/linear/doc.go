// Package linear judges the answers and the deliveries of one named timer. There must be an order of all operations in
// which every answer is correct.
//
// The entries of a timer's subject are a register with compare-and-set. An acknowledged set or cancel is in the order.
// A refused one found another generation than it expected. One without an answer may be in the order, at any time after
// it was sent, or not. A delivery removes the generation. Each operation takes effect between its call and its return.
// A timer that is still pending at the end was lost.
//
// A series is such a register, too. The delivery of a round writes the next round, under a generation that no client
// learns, until no round is left. So a missing round shows as one that stays pending. A round that is delivered twice,
// out of order, during a pause or after a cancel shows as one that was not pending. A move, a resumption and a change
// of the table write the same round again. A series that is paused at the end was not lost.
package linear
