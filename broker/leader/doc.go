// Package leader estimates the clock of a stream's leader. The leader stamps all messages that it stores. So the times
// at which a message was stored, is due, and leaves its lane are times of the leader, and a delivery is early only if
// it is early by that clock.
//
// This host has another clock. Its times are of type time.Time and the leader's are of type [Time], so the compiler
// keeps the two apart. [Clock] knows the offset between the two clocks; other code passes a wait from one to the other
// as a duration. Times in a message are still of type time.Time. A comment there names the clock, and [At] converts the
// time to a leader's. The project treats the clocks of two streams' leaders as one: the leaders are servers of one
// cluster, and their clocks differ by no more than the servers' synchronisation allows.
//
// # When they differ
//
// The due time is a time of the leader of the first stream. Whether it has come is decided by the clock of the leader
// of the last stream: of a level, or of the timers' stream for a round that follows within seconds. So by a third
// clock, a delivery is early by as much as the first leader's clock is behind the last one's, and late by as much as it
// is ahead. Streams in between do not matter: each one counts the time left until the due time by its own clock, so the
// next one corrects its error. A message that stays in one stream is not affected. No message is delivered twice, and
// no round of a series is lost or repeated: the times of rounds come from the table.
//
// # Where two clocks meet
//
// The local clock and a leader's clock are compared in Clock.Offset. Code that has no lane, and so no Clock, follows
// the same rule in these files:
//
//	timer/store/clock.go                            the time of a request for a timer or a schedule
//	stats/early.go                                  check for an early delivery, with a later answer of the leader
//	timer/schedules/takeover.go, inspect/letters.go the server's time, some time after its answer
//	doctor/clock.go                                 the difference of the two clocks, for an operator
//	client/arrival.go                               the lateness of a delivery, by the receiver's clock
//
// The clocks of two servers are compared where a stream's creation time is compared with a message's timestamp
// (timer/role/examine.go, inspect/whereabouts.go), where a schedule of the server's is compared with a later change by
// a client (timer/schedules/takeover.go), and where records are searched by their time (journal/search.go). The time
// from which on all messages are sealed is a server's time, or at first the time of the process that provisioned the
// streams (streams/secret.go). Package lease compares each instance's clock only with itself.
package leader
