// Package leader tells the time of the leader of a stream. That clock stamps all messages that are stored. So the times
// at which a message was stored, is due, and leaves its lane are times of the leader, and only by that clock can a
// delivery be early.
//
// Our own clock is another clock, and its times are of type time.Time: the compiler keeps the two apart. [Clock] knows
// how far the two are apart; elsewhere, a wait is carried over as a duration. What comes from a message is still a
// time.Time, so there a comment says by which clock it is, and [At] makes it a leader's. The leaders of two streams are
// taken to have the same time: they are servers of one cluster, and as far apart as their synchronisation leaves them.
package leader
