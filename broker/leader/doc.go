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
// Within one lane, backoffs also wait by the leader's clock. So if a new leader's clock is behind, a message that backs
// off at the change of leaders waits longer by the difference. All messages of the lane that are not due yet wait
// longer by the same difference, so backoffs have no clock of their own.
//
// # Comparisons of clocks
//
// Clock.Offset compares the local clock with the clock of a leader. These files use a leader's time without a Clock.
// The test of this list fails if a file is missing.
//
//	lane/sample.go, engine/sample.go        samples, for the Clock of a lane
//	timer/change/read.go                    the leader's time when a request arrives, from an earlier answer
//	timer/role/stream.go                    the same, from the answer to a request of the sweep
//	stats/early.go                          check for an early delivery, with a later answer of the leader
//	deadletter/store.go, journal/search.go  the server's time now, from an answer
//	inspect/lanes.go, inspect/lane.go,      for an operator: ages and lateness, from two times in one answer of a leader
//	inspect/owner.go, doctor/checks_streams.go, doctor/checks_journal.go
//	inspect/session.go                      for an operator: the difference between the two clocks
//	client/arrival.go                       the lateness of a delivery, by the receiver's clock
//	engine/pauses.go                        the begin of a resumption that the stream could not store, by the local
//	                                        clock: only the lateness in figures depends on it
//
// No code compares the clocks of two hosts. These times come from the clock of an operator's or of another instance's
// host, and people read them: Pause.Since and Pause.Changed. The versions of the list of pauses are such times, too,
// but the stream orders the lists: see pause.Keeper. A list forgets an ended pause when these clocks show an hour
// (pause/list.go); if they are wrong, the active instance finds late messages an hour later.
package leader
