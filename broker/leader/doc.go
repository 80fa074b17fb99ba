// Package leader tells the time of the leader of a stream. That clock stamps all messages that are stored. So the times
// at which a message was stored, is due, and leaves its lane are times of the leader, and only by that clock can a
// delivery be early.
//
// Our own clock is another clock, and its times are of type time.Time: the compiler keeps the two apart. [Clock] knows
// how far the two are apart; elsewhere, a wait is carried over as a duration. What comes from a message is still a
// time.Time, so there a comment says by which clock it is, and [At] makes it a leader's. The leaders of two streams are
// taken to have the same time: they are servers of one cluster, and as far apart as their synchronisation leaves them.
//
// # When they differ
//
// The leader of the first stream stamps when a message is due. Whether that time has come, the leader of the stream
// says in which the message waits last: a level's, or that of the timers for a round that follows within seconds. So by
// a third clock a delivery is early by what the first is behind the last, and late by what it is ahead, however many
// streams were between. Nothing adds up: each stream counts what is left to the due time by its own clock, and what it
// counts too much or too little, the next one corrects. A message that stays in one stream does not notice. Nothing
// comes twice, and no round of a series is lost or repeated: the times of rounds come from the table.
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
// inspect/whereabouts.go), where a schedule of the server's is compared with what a client said of it later
// (dialect/takeover.go), and where records are searched by their time (journal/search.go). Since when all messages
// are sealed is a server's time, or at first that of whoever provisioned (layout/secret.go). Package lease compares
// each instance's clock only with itself.
package leader
