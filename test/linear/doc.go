// Package linear judges what clients were told of one named timer, together with what was delivered of it: there must
// be an order in which every answer is right.
//
// The entries of a timer's subject are a register that is compared and set. A set or cancel that was acknowledged is in
// the order; one that was refused saw another generation than it expected; one that was not answered may be in it, at
// any time after it was sent, or not. A delivery takes the generation away. Each stands somewhere between its call and
// its return. What is pending at the end was lost.
//
// A series is such a register, too. The delivery of a round puts the next one there, under a generation of which nobody
// was told, until there are no more. So a round that is missing is found as one that never ceased to be pending, and
// one that comes twice, out of turn, of a pause or after a cancel as one that was not. A move, a resumption and another
// table put the same round there anew. What is paused at the end was not lost.
package linear
