// Package leader tells the time of the leader of a stream. That clock stamps all messages that are stored. So the times
// at which a message was stored, is due, and leaves its lane are times of the leader, and only by that clock can a
// delivery be early.
//
// Our own clock is another clock, and its times are of type time.Time: the compiler keeps the two apart. [Clock] knows
// how far the two are apart; elsewhere, a wait is carried over as a duration. What comes from a message is still a
// time.Time, so there a comment says by which clock it is, and [At] makes it a leader's. The leaders of two streams are
// taken to have the same time: they are servers of one cluster, and as far apart as their synchronisation leaves them.
//
// # Where two clocks meet
//
// Our own and a leader's meet in Clock.Offset alone, and in what follows the same rule where no lane is at hand:
//
//	control/clock.go                             what is asked of a timer, or for a schedule
//	figures/early.go                             was a delivery early, by what a leader said later
//	dialect/takeover.go, inspect/letters.go      what a server's clock shows, some time after it was asked
//	inspect/clock.go                             by how much they differ, for an operator
//	client/arrival.go                            how late it was, by the clock of who receives
//
// The clocks of two servers meet where a stream's creation is compared with a message's timestamp (timer/judge.go,
// inspect/whereabouts.go), and where records are searched by their time (journal/search.go). Since when all messages
// are sealed is a server's time, or at first that of whoever provisioned (layout/secret.go). Package lease compares
// each instance's clock only with itself.
package leader
