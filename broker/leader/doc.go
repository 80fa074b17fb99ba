// Package leader estimates the clock of a stream's leader. The leader stamps all messages that it stores. So the times
// at which a message was stored, is due, and leaves its lane are times of the leader's clock. That clock decides
// whether a delivery is early.
//
// The local host has another clock. Local times are of type time.Time, and times of the leader's clock are of type
// [Time], so the compiler distinguishes them. The times in a message are of type time.Time, with a comment that names
// their clock; [At] converts such a time to a leader's time. The broker treats the clocks of all streams' leaders as
// one clock: the leaders are servers of one cluster, and their clocks differ only as far as the synchronisation
// permits.
//
// # When the leaders' clocks differ
//
// A message may pass through several streams. The leader of the first stream fixes the due time. The clock of the last
// stream's leader decides whether the due time has come. So if the first leader's clock is behind the last leader's
// clock, the delivery is early by the difference. If the first leader's clock is ahead, the delivery is late by the
// difference. The clocks in between do not matter: in each stream, the remaining time is measured again. A message that
// stays in one stream is not affected. A difference of the clocks causes no duplicate. It neither loses nor repeats a
// round of a series, because the schedule determines the times of rounds.
//
// # Comparisons of clocks
//
// Clock.Offset compares the local clock with the clock of a leader. The code in these files has no Clock, and compares
// the two clocks itself:
//
//	timer/store/read.go                             the leader's time when a request arrives, from an earlier answer
//	stats/early.go                                  check for an early delivery, with a later answer of the leader
//	timer/schedules/takeover.go, inspect/letters.go the server's time now, from an earlier answer
//	doctor/clock.go                                 the difference of the two clocks, for an operator
//	client/arrival.go                               the lateness of a delivery, by the receiver's clock
package leader
