// Package timer is the state machine of named timers, without NATS: the state of a timer (State), the answer to a
// request in that state (Decide), and the sequence from which the next active instance reads the stream (Cursor).
// Package entry parses and writes the entries of the stream. Package change reads the entries, and changes a timer.
// Package store lists timers. Package role decides about due timers.
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
//     a scan of the stream, finds timers that are overdue by a minute. A sweep runs when an instance becomes
//     active. Later sweeps run only while an entry may need one: an overdue timer, for example. After a
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
//	set stored, not read                         the active instance reads the set
//	set read, marker not stored                  the next active instance reads the set again
//	marker stored, cursor not                    a second marker is sent; it finds no timer
//	firing stored, message not delivered         the next active instance delivers
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
//	two active at the same time       one claim is refused; its sender leaves  TestTimerWithTwoOwners
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
//   - With Delay-Pause-After, the pending round counts the dead letters in a row. After the letter of a round is
//     stored, the worker replaces the pending round, before it settles the failed one (role/failure.go). The entry
//     names the latest failed round. So a repetition counts no round twice, and a row has no gaps.
//
// After a crash, a series continues as follows:
//
//	state or event                   recovery                                  test
//	round fired, not delivered       the next active instance delivers         TestRoundFiredAndNotDelivered
//	- and its marker is lost         the sweep delivers                        TestRoundFiredAndNotDelivered
//	- and a cancel or set over it    delivered; no further round fires         TestRoundFiredAndNotDelivered
//	- and the cancel's time is over  it stays until the round is settled       TestCancelStaysOverRounds
//	delivered, entry not removed     delivered again under the same id         TestRoundDeliveredAndNotRemoved
//	next round's marker is lost      the sweep finds the next round            TestRoundFoundBySweep
//	previous round is not settled    the next waits, and may be missed         TestRoundWaitsForPrevious
//	- and the next was moved         the next waits, and may be missed         TestChangedRoundWaitsForPrevious
//	- and the instance has crashed   the next waits, and may be missed         TestRoundFromMarkerWaitsForPrevious
//	dead letter stored, not counted  stored again under the same id, counted   TestPauseAfterTakeOver
//	two active for a long time       one claim is refused; its sender finds    TestRoundWithTwoOwners
//	                                 the round settled
//	kills, while clocks change       each occurrence fires once                TestSeriesThroughChangesOfClocks
//
// # Debounced sets
//
// Consecutive sets of a subject with Delay-Max-Wait are a run. The last one fires when its Delay-For has passed, or
// Delay-Max-Wait after the first set was stored, whichever is earlier. So the first set stays in the stream until the
// run has ended. The worker removes the sets between the first and the last, like every replaced set.
//
//   - The timers' lane reads the sets in order, and the sets of a run share its start (role/run.go). Only the first
//     set that the lane reads of a run asks for the start (readRun): one read, or a few, however long the run is. The
//     result goes to the latest set. Until then, that set stays in memory, and has no marker.
//   - A replaced set is removed as soon as it is read, unless it may be the first of its run.
//   - A marker contains the generation of the first set (Delay-Timer-Run).
//   - Before a set fires earlier than its own Delay-For, the worker reads from the leader whether the first set is
//     still stored. This one read proves that no entry has ended the run, except for an entry that the lane has read.
//     If the first set and the later sets were stored while this instance was active, no other instance has removed
//     an entry, and the read is not necessary. So a wrong start in memory, in a marker or in a copy costs reads, and no
//     timer fires early.
//   - A firing expects the latest set. If sets come faster than the lane can read one and store its firing, the firing
//     is refused until there is a gap of that length.
//   - The entry that ended a run, such as a cancel, is removed only after all entries before it, even if it was
//     replaced. So while the stream has the first set of a run, and only debounced sets after that set, the run has not
//     ended.
//
// After crashes, and during other changes:
//
//	state or event                    recovery                                        test
//	later set stored, not read        the active instance reads the run               TestDebounceThroughCrashes
//	later set's marker stored         the marker has the due time and the first       TestDebounceThroughCrashes
//	                                  set; the active instance reads the first set
//	- and the run continues           the active instance reads the run               TestDebounceThroughCrashes
//	end of a run stored, not read     the next set comes after the end: a new run     TestDebounceBeginsAnew
//	end replaced, not removed         entries before the end are removed first        TestDebounceBeginsAnew
//	next run begun                    its first set is the first entry, or follows    TestDebounceBeginsAnew
//	                                  the end of the previous run
//	run is read during its removal    the first set is gone: the run is read again    TestRunEndsWhileItIsRead
//	a thousand sets a second          delivered on time; the next run follows         TestDebounceOfAFlood
//	100,000 sets, no broker           one read of the run; delivered after the start  TestDebounceWhileNoBrokerRuns
//	another tenant floods its keys    reads and removals take turns by tenant         TestDebounceDoesNotDisturbOthers
//
// At a hundred sets a second, each set costs its publish and one delete. The end of the run costs five reads
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
// An atomic batch of the entries of several timers, set or cancelled all or none. Kills do not speak against it. The
// program test/rivals/batchkill kills nats-server 2.15.3 while it stores a batch of forty entries. On one replica, 800
// kills left 491 batches unstored, and 309 stored as a whole. Five of these were half stored, and the server completed
// them when it started, before a client could publish. On three replicas, 55 kills of all servers left 2 batches
// unstored, and 53 stored as a whole. Every acknowledged batch was stored, and no cancelled timer became pending again.
// But each client that may set one timer could then open batches in the stream of all tenants, and leave them open:
//
//   - The server accepts fifty open batches for a stream (10210), and a thousand in all accounts together. A batch
//     stays open for ten seconds after its latest message. So one client, with a message in ten seconds for each of
//     fifty batches, kept the batches of all other tenants out for as long as it wished.
//   - The server stages an open batch in files of its own, of up to a thousand messages of max_payload each. The limits
//     of the stream and the account do not count these files. Fifty batches of four messages of 256 KiB took 52 MiB of
//     the disk, in an empty stream with a max_bytes of 1 MiB. Full batches of messages of 1 MiB would take 50 GiB.
//
// Both limits are settings of the server, for all streams and all accounts, and not of a stream or a user.
//
// For debounced sets, a read of the whole run for each set of unknown start. Three thousand sets in a burst were not
// delivered for five minutes, because no set of the run was still the latest one when its read ended. A closing entry
// without an expectation, which fires the set directly before it, would fire a timer even if its sets leave no gap. But
// the body would lie in another entry than the firing, and each reader of a last entry would have to look behind it.
//
// Deletes as cancels. With three replicas, a delete of sequence N and a publish that expects N both succeeded in 2,314
// of 4,000 races.
//
// Bodies in markers. A timer that a client replaces at every keystroke would leave a copy of its body in the levels
// each time.
//
// A claim without the body, which is in the set. It would save less than 1 µs a claim for a body of 256 bytes, and 85
// µs for one of 64 KiB. But then the set must stay as long as its firing, also under a later set or cancel, so more
// entries could not be removed when they are replaced.
//
// Markers that are reused when a set with a later due time replaces their set. A set waits in memory before its marker
// is sent, so a timer that is replaced often has no marker yet (TestTimerResetByHeartbeats).
//
// New markers after a purge of a level. They would save the minutes until the next sweep, and cost a scan of all
// timers.
//
// For series, two publishes: a firing, and then the set of the next round. A crash between them ends the series, or the
// recovery creates the round twice.
package timer
