// Package linear judges what clients were told of one named timer, together with what was delivered of it: there must
// be an order in which every answer is right.
//
// The entries of a timer's subject are a register that is compared and set. A set or cancel that was acknowledged is in
// the order; one that was refused saw another generation than it expected; one that was not answered may be in it, at
// any time after it was sent, or not. A delivery takes the generation away. Each stands somewhere between its call and
// its return. What is pending at the end was lost.
package linear
