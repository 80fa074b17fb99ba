// Package timer is the state machine of named timers, without NATS: the state of a timer (State), the answer to a
// request in that state (Decide), and the sequence from which the next owner of the timers' lane reads the stream
// (Cursor). Package entry parses and writes the entries of the stream. Package store reads the entries, and changes
// timers. Package role decides about due timers.
//
// # Subjects, entries and generations
//
// A timer is a subject delaytimer.<key>.<target…> of the stream DELAY_TIMERS. The messages of the subject are its
// entries, and the last entry is the timer's state. The message that sets a timer is its set; the sequence of the set
// is the generation of the timer. A firing is the entry that a broker stores before it delivers a generation. A claim
// is the publish of a firing. A firing is settled when its message is delivered, waits in another lane, or is a dead
// letter. A marker is a message in a level; when the marker is due, the broker fires the timer, unless the timer has
// changed. An armed timer has a marker.
//
//	                    the stream's leader puts these publishes into one order
//	set g ──┬─▶ fired g ──▶ (delivered, in a retry lane, or dead) ──▶ over (the outcome) ──▶ no entry
//	        ├─▶ cancel ──▶ no entry
//	        └─▶ set h     moved, or replaced
//
// Each set, cancel, move or firing is one publish. Of all publishes that expect generation g to be the last entry of
// the subject, at most one succeeds. Clients publish sets and cancels themselves, and get exact answers even while no
// broker runs.
//
// # Invariants
//
//   - A timer is delivered only after the leader has stored its firing. An acknowledged cancel that expects g is final.
//   - The firing contains the body. An instance that finds the firing of a dead instance delivers the body in it.
//   - After a missing or ambiguous answer to a claim, the broker reads the last entry from the leader.
//   - A fired timer is delivered, even if a client publishes over the firing without an expected generation. So if the
//     last entry does not show whether the generation has fired, the broker reads the entry of the subject that
//     directly follows the set.
//   - The last entry of a subject is removed only after all entries before it, except unsettled firings. On a subject,
//     each delete waits for the answer to the previous one. A killed server may forget deletes, but only the latest
//     ones. So if it recovers an earlier entry, it also recovers the last one. Entries before the last one may be
//     removed in any order. An entry that may be an unsettled firing stays, too. Rounds and debounced sets have further
//     rules: see below.
//   - Only the entries are authoritative. If markers or the cursor are lost, a timer is late, but not lost: the sweep,
//     a scan of the stream, finds timers that are overdue by a minute. A sweep runs when an instance becomes the owner
//     of the timers' lane. Later sweeps run only while an entry may need one: an overdue timer, for example. After a
//     sweep, the next one waits for a hundred times the duration of the sweep, for a minute at least and an hour at
//     most: a minute with up to 200,000 timers, five minutes with a million.
//   - A claim expects the generation, so its acknowledgement also proves that the timer was pending. The worker, which
//     runs the loop of a lane, reads the body ahead of time, from any replica. An entry never changes. So an answer
//     with the sequence and the timestamp of the generation contains that entry, even if the replica lags.
//
// # Cost
//
// These are the operations for one timer, as TestOperationsOfTimers and TestOperationsOfRounds count them. A copy is an
// entry that a replica returns; one request returns up to 256 copies. A read is a request to the leader. The history is
// the time for which the stream keeps outcomes and cancels (DELAY_TIMER_HISTORY).
//
//	                      a timer                               a round of a series
//	when it is armed      publish of the marker; a copy of the  publish of the next round's marker
//	                      first entry of the timer's subject,
//	                      unless the set expected no entry
//	before it is due      a copy of its entry                   a copy of its entry
//	when it is due        claim; delivery                       claim, which is the next round's set; delivery
//	afterwards            publish of the outcome; two deletes   one delete
//	afterwards, without   a read; two deletes                   one delete
//	a history
//
// With a history, a cancel costs its publish, a copy of the set, and one delete (TestOperationsOfCancels). After the
// time of the history, the sweep removes the cancel, or the outcome of a firing, with a read and a delete.
//
// A set waits in memory before its marker is sent: for ten seconds (a round: one second), or for half of its delay if
// that is less. So a timer that a client replaces every two seconds has one entry and no marker
// (TestTimerResetByHeartbeats). While memory is short, sets do not wait.
//
// These cases cost further reads: a missing answer, a refusal, a previous round that another instance has settled, and
// the firing of a set without a marker (earlier sets may remain). If replicas cannot be asked (no permission, no
// allow_direct, no answer), the worker reads due timers from the leader.
//
// If an outcome is stored, the worker removes the generation and its firing without a read: the firing expected the
// generation, and the outcome expected the firing, so no other entry lies between them. Entries before the generation
// were removed when the marker was stored, but a killed server may have forgotten these deletes. So before the sweep's
// later removal of the outcome, the worker reads the subject from its first entry.
//
// # Crashes
//
// TestTimerCrashes tests each row.
//
//	crash after                                  recovery
//	set stored, not read                         the owner of the timers' lane reads the set
//	set read, marker not stored                  the next owner of the timers' lane reads the set again
//	marker stored, cursor not                    a second marker is sent; it finds no timer
//	firing stored, message not delivered         the next owner of the marker's lane delivers
//	firing stored, and its marker is lost        the sweep delivers
//	message delivered, entries not removed       delivered again under the same id, then removed
//	entries removed, marker not purged           the marker finds no timer, and is dropped
//	cancel stored                                the marker finds no timer, and is dropped
//
// Other disturbances:
//
//	event                             result                                   test
//	timer changed after the copy      the claim is refused, and the worker     TestTimerChangedAfterItWasRead
//	                                  reads from the leader
//	a replica lags, or lacks the      the worker reads from the leader         TestCopied
//	entry
//	a server recovers an old entry    it is removed before the last entry      TestRemoveKnownEntries
//	a client sets the timer over      the firing is delivered; the set is a    TestTimerReplacedWhileFiring
//	its firing                        separate timer
//	that second timer ends first      the firing stays until it is settled     TestFiringKeptUntilSettled
//	two owners at the same time       one claim is refused; its owner leaves   TestTimerWithTwoOwners
//	                                  the firing to the other
//	the stream is full                firing is late; a cancel is refused      TestTimerWithoutRoom
//	a sweep fails                     the next sweep runs a minute later       TestSweepAfterTrouble
//	a killed server forgets deletes   no cancelled timer is pending again      TestTimersOnKill, test/fault
//
// # Series
//
// A recurring timer is a series of rounds. The entry that records the firing of a round is also the set of the next
// round, if there is one: one publish, which expects the round's generation. So no round is lost between firing and
// next set, and none fires twice.
//
//	set g ──▶ round h: g has fired ──▶ round i: h has fired ──▶ … ──▶ fired ──▶ over
//	            └──▶ round k: replaces h, which was missed, moved or paused; the same round, set again
//
// Rules for a series:
//
//   - A round's own entry is the entry that has set the round. The own entry of a fired round is removed when the round
//     is settled, and not before. The next round's entry stays. So if a round's firing is the next round's entry, the
//     round is settled if, and only if, its own entry is removed.
//   - A round fires only when the earlier rounds are settled. So at most one round of a series has fired and is not
//     settled. The next round may be moved, paused or given another table meanwhile. So a round's own entry does not
//     show whether the earlier rounds are settled: the worker reads all remaining entries of the series.
//   - Until a fired round is settled, its entry, the next round's entry and the last entry stay. Otherwise, after a
//     cancel is removed, the cancelled next round would be the last entry again, and pending.
//   - The next round depends only on the time table, the series, the round and the present time:
//     timetable.Table.Decide.
//
// After a crash, a series continues as follows:
//
//	state or event                   recovery                                  test
//	round fired, not delivered       the owner of its marker's lane delivers   TestRoundFiredAndNotDelivered
//	- and its marker is lost         the sweep delivers                        TestRoundFiredAndNotDelivered
//	- and a cancel or set over it    delivered; no further round fires         TestRoundFiredAndNotDelivered
//	- and the cancel's time is over  it stays until the round is settled       TestCancelStaysOverRounds
//	delivered, entry not removed     delivered again under the same id         TestRoundDeliveredAndNotRemoved
//	next round's marker is lost      the sweep finds the next round            TestRoundFoundBySweep
//	previous round is not settled    the next waits, and may be missed         TestRoundWaitsForPrevious
//	- and the next was moved         the next waits, and may be missed         TestChangedRoundWaitsForPrevious
//	- and the instance has crashed   the next waits, and may be missed         TestRoundFromMarkerWaitsForPrevious
//	two owners for a long time       one claim is refused; its owner finds     TestRoundWithTwoOwners
//	                                 the round settled
//	kills, while clocks change       each occurrence fires once                TestSeriesThroughChangesOfClocks
//
// # Debounced sets
//
// Consecutive sets of a subject with Delay-Max-Wait are a run. The last one fires when its Delay-For has passed, or
// Delay-Max-Wait after the first set was stored, whichever is earlier. So the first set stays in the stream until the
// run has ended. The worker removes the sets between the first and the last, like every replaced set.
//
//   - The worker takes the start of the run from the previous set, if that set is in memory. Otherwise, the worker
//     treats the new set as due, and so reads the start immediately.
//   - Before a set fires earlier than its own Delay-For, the worker reads the start of the run from the leader
//     (role.Stream.ReadRun). So a wrong start in memory, in a marker or in a copy costs a read, and no timer fires
//     early.
//   - The entry that ended a run, such as a cancel, is removed only after all entries before it, even if it was
//     replaced. So while the stream has the first set of a run, and only debounced sets after that set, the run has not
//     ended.
//
// After crashes, and during other changes:
//
//	state or event                    recovery                                        test
//	later set stored, not read        the owner of the timers' lane reads the run     TestDebounceThroughCrashes
//	later set's marker stored         the marker has the due time; the owner of its   TestDebounceThroughCrashes
//	                                  lane reads the run
//	- and the run continues           the owner of the timers' lane reads the run     TestDebounceThroughCrashes
//	end of a run stored, not read     the next set comes after the end: a new run     TestDebounceBeginsAnew
//	end replaced, not removed         entries before the end are removed first        TestDebounceBeginsAnew
//	next run begun                    its first set is the first entry, or follows    TestDebounceBeginsAnew
//	                                  the end of the previous run
//	run is read during its removal    the first set is gone: the run is read again    TestRunEndsWhileItIsRead
//
// At a hundred sets a second, each set costs its publish and one delete. The end of the run costs eight reads
// (TestOperationsOfDebounce).
//
// # Tried and rejected
//
// One message per subject, enforced by the server (max_msgs_per_subject). Storing a cancel removes the set in the same
// step, but nats-server 2.15 writes no tombstone for the set. If the server is killed after the cancel is removed, it
// recovers the set: dozens of cancelled timers were pending again (TestTimersOnKill). Two pipelined deletes for each
// key failed in the same way in 2 of 976 cases; so each delete waits for its answer. An atomic batch of entry and
// tombstone is correct, but the server stores only 157 batches a second.
//
// Deletes as cancels. With three replicas, a delete of sequence N and a publish that expects N both succeeded in 2,314
// of 4,000 races.
//
// Bodies in markers. A timer that a client replaces at every keystroke would leave a copy of its body in the levels
// each time.
//
// A claim without the body, which is in the set. It would save less than 1 µs a claim for a body of 256 bytes, and 85
// µs for one of 64 KiB. But an older broker that finds such a claim would deliver an empty body. With a newer format,
// it would leave the fired timer to a newer broker.
//
// Markers that are reused when a set with a later due time replaces their set. An older broker drops such a marker, so
// in a rolling upgrade only the sweep would find the timer. Instead, a set waits before its marker is sent.
//
// New markers after a purge of a level. They would save the minutes until the next sweep, and cost a scan of all
// timers.
//
// For series, two publishes: a firing, and then the set of the next round. A crash between them ends the series, or the
// recovery creates the round twice.
package timer
