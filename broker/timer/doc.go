// Package timer is the state machine of named timers, without NATS: the state of a timer, the answer to a request in
// that state, the position up to which the timers' stream has been read, the firings that this process is working on,
// and the rounds that it has settled. Package entry reads and writes the entries themselves. Package store reads them
// from the stream, and changes timers there. Package role decides about due timers.
//
// # A key is a subject, its last entry is its state
//
// The last message of each subject delaytimer.<key>.<target…> in DELAY_TIMERS is the state of a timer. The generation
// of a timer is the sequence of its set.
//
//	                    the leader decides in one order
//	set g ──┬─▶ fired g ──▶ (delivered, in a retry lane, or dead) ──▶ over ──▶ nothing
//	        ├─▶ cancel ──▶ nothing
//	        └─▶ set h     moved, or replaced
//
// Every state change is one publish that expects generation g to be the last entry of its subject. So exactly one of
// fire, cancel, move and replace wins, whoever publishes it. A client with nothing but NATS gets exact answers, whether
// the broker is up or down.
//
// # Invariants
//
//   - Nothing is delivered before the leader has stored the firing. An acknowledged cancel that expects g is final.
//   - The firing contains the body. An instance that finds the firing of a dead instance delivers that body.
//   - A missing or ambiguous answer decides nothing: the leader is asked for the last entry.
//   - A fired timer is delivered, even if a client publishes over the firing without an expected generation. So if
//     another entry is the last one, the leader is asked for the entry right behind the generation.
//   - An entry is removed only after all entries before it on its subject. Each delete waits for the answer to the one
//     before. A server that is killed may forget deletes, the last ones first; so a recovered entry is always followed
//     by the entries that came after it. (An entry that is not the last one may be removed at any time.) Firings are
//     the only exception: an instance that has not settled a firing leaves it, and removes the other entries.
//   - The cursor is an optimisation, the stream is the truth. If anything but the stream is lost, a timer is late and
//     never lost: the sweep finds overdue timers.
//   - The sweep looks for timers that are overdue by a minute. It runs at a take-over, and then as often as it costs a
//     hundredth of a core: each minute up to 200,000 timers, each five minutes at a million, and at least hourly. After
//     a purge of a level, markers are not sent again: that would gain minutes, and cost a pass through all timers and a
//     second marker for each.
//   - A claim expects its generation, so the leader's answer to it also proves whether the generation was pending:
//     nothing is read before. The body comes from any replica of the stream, ahead of time. An entry never changes, so
//     a copy with the sequence and the time of the generation is that entry, however far the replica lags.
//
// # Cost
//
// Operations for one timer, as TestOperationsOfTimers, TestOperationsOfRounds and TestDueTimersAskNothing count them. A
// copy is an entry that a replica gives, up to 256 of them in one request; a read is a question to the leader.
//
//	                   a timer                                 a round of a series
//	when it is armed   the marker; a copy of the first entry   the marker of the next round
//	                   of its subject, unless the set
//	                   expected no entry
//	before it is due   a copy of its entry                     a copy of its entry
//	when it is due     the claim, the delivery                 the claim, which is the next round; the delivery
//	after what is due  the outcome; two deletes                one delete
//	without a history  a read; two deletes
//
// A set waits in memory before its marker is sent: for ten seconds, or for half of its delay if that is less. A timer
// that is reset every two seconds has no marker, and one entry (TestTimerResetByHeartbeats). While many messages are in
// memory, sets do not wait.
//
// The worker reads more only in three cases: an answer is missing or is a refusal; another instance has settled the
// round before; or a set fires that was not armed and may have others before it. Without the right to ask replicas, or
// in a stream that does not allow it (allow_direct), the worker reads a timer from the leader when it is due.
//
// The worker removes known entries without reading them. No entry lies between a generation and its firing, because the
// firing expected the generation. Likewise, none lies between the firing and the entry that records the outcome.
// Earlier entries were removed when the marker was stored. A server that was killed may have forgotten that. So the
// last entry of a subject is removed only if it is also the first that the leader has. An entry that stays behind the
// firing hides a recovered entry, and is removed after it.
//
// # Where it may crash
//
// The test acts out each row: TestTimerCrashes.
//
//	after                          who goes on
//	set stored, not read           the lane's worker, from the cursor
//	set read, marker not stored    the lane's worker, from the cursor
//	marker stored, cursor not      a second marker, which finds nothing
//	firing stored, not delivered   its marker's lane, after the lease
//	and its marker is lost         the sweep
//	delivered, not removed         once more, under one id; then removed
//	removed, marker not committed  the marker finds nothing, and goes
//	cancel stored                  likewise
//
// What else may come between:
//
//	what                           what happens                             test
//	read ahead, then changed       the claim is refused, and the leader is  TestTimerChangedAfterItWasRead
//	                               asked
//	a replica lags, or lacks it    the leader is asked for this timer       TestCopied
//	an old entry is back           it is removed first, or stays hidden     TestRemoveKnownEntries
//	set by a client over a firing  the firing is delivered all the same     TestTimerSetOverItsFiring
//	what was set is over, too      the firing stays until it is settled     TestFiringStaysUntilItIsSettled
//	two owners for a moment        one is refused, and waits                TestTimerWithTwoOwners
//	no room                        late, never lost; a cancel is possible   TestTimerWithoutRoom
//	a pass that is cut short       the next pass runs a minute later        TestSweepAfterTrouble
//	the server is killed           later entries survive, too               TestTimersOnKill, test/fault
//
// # Series
//
// A timer that recurs is a series of rounds. The entry that records the firing of a round is also the set of the next
// round: one publish, which expects the round. So no round is lost between the two, and none fires twice.
//
//	set g ──▶ round h: g has fired ──▶ round i: h has fired ──▶ … ──▶ fired ──▶ over
//	            └──▶ round k: h was missed, moved or paused, and k is the same round at another time
//
// Rules for a series:
//
//   - A round's own entry is removed when the round is settled, and only then. The entry behind it stays, as the next
//     round. So a round is settled if, and only if, its entry is gone and the next one's is known.
//   - A round fires only when the earlier rounds are settled. So at most one round of a series is on its way. The entry
//     of a round that was moved, paused or given another table may replace one that follows a round on its way. So the
//     worker reads all remaining entries of the series, and needs no header that names the round before.
//   - While a round is on its way, the next one's entry stays behind it, and so do all later entries. Otherwise a
//     cancelled round would be the last entry again, and pending.
//   - The next round is a pure function of the table, the round and the time: timetable.Table.Decide.
//
// After a crash, a series continues as follows:
//
//	after                           who goes on                             test
//	round stored, not delivered     the owner of the round before           TestRoundFiredAndNotDelivered
//	and its marker is lost          the sweep                               TestRoundFiredAndNotDelivered
//	and a cancel or set over it     likewise; no further round fires        TestRoundFiredAndNotDelivered
//	and what was put over it ends   it stays until the round is settled     TestCancelStaysOverRounds
//	delivered, not removed          once more, under one id; then removed   TestRoundDeliveredAndNotRemoved
//	the next one's marker is lost   the sweep                               TestRoundFoundBySweep
//	the next is due meanwhile       it waits, and may be missed             TestRoundWaitsForTheOneBefore
//	and it was moved meanwhile      likewise                                TestChangedRoundWaitsForTheOneBefore
//	and its marker is looked up     likewise                        TestRoundFromItsMarkerWaitsForTheOneBefore
//	two owners, all the time        one is refused, and finds it settled    TestRoundWithTwoOwners
//	kills, while clocks change      each occurrence once                    TestSeriesThroughChangesOfClocks
//
// # Debounced sets
//
// Sets with Delay-Max-Wait that follow each other on a subject are a run. The last one fires when its Delay-For has
// passed, and at the latest Delay-Max-Wait after the first one was stored. So the first set stays in the stream until
// the run has ended. The worker removes the sets between, as it removes every replaced set.
//
//   - The worker takes the start of the run from the set before, if that is in memory. If it does not know the start,
//     it treats the set as due at once.
//   - Before a set fires earlier than its own Delay-For demands, the worker asks the leader for the start of the run
//     (role.Stream.RunOf). So wrong knowledge in memory, in a marker or in a copy costs a question, and fires nothing
//     early.
//   - An entry that has ended a run is removed only after all entries before it, even a replaced one. So the run has
//     not ended while its first set is left with only debounced sets behind it.
//
// After a crash, and in between:
//
//	after                            who goes on                                    test
//	later set stored, not read       the lane's worker asks for the run             TestDebounceThroughCrashes
//	its marker stored                the marker has the time; the run is read       TestDebounceThroughCrashes
//	and the run goes on              the lane's worker asks for the run             TestDebounceThroughCrashes
//	end of a run stored, not read    it stands between, so another run begins       TestDebounceBeginsAnew
//	end replaced, not removed        likewise; entries before it are removed first  TestDebounceBeginsAnew
//	next run begun                   likewise, or the first run has no entry left   TestDebounceBeginsAnew
//	run is read while it is removed  its first set is gone: it is read again        TestRunEndsWhileItIsRead
//
// Each of a hundred sets a second costs the set and one delete. The end of the run costs eight reads
// (TestOperationsOfDebounce).
//
// # Tried and rejected
//
// One message per subject, enforced by the server (max_msgs_per_subject): storing a change removes the set in the same
// step, but nats-server 2.15 writes no tombstone for that. When the entry of the change is removed, by a delete or by
// its time to live, a server that is killed finds the set in its blocks again, and nothing behind it: cancelled timers
// came back by the dozen (TestTimersOnKill). Two pipelined deletes for each key failed likewise in 2 of 976 cases; so
// each delete waits for its answer. An atomic batch of record and tombstone is right and slow: 157 a second. Deletes as
// changes: with three replicas, a delete of N and a publish that expects N both succeeded in 2,314 of 4,000 races.
//
// Bodies in markers: a timer that is reset at every keystroke leaves a copy of its body in the levels each time.
//
// A claim without a body, which stays in the set. At the due time it saves the body once: 256 bytes and less than a
// microsecond of 25 for a small body, 64 KiB and 85 µs for a large one. An older broker that finds such a claim would
// deliver an empty body. A newer format would prevent that; but then, after a downgrade, fired timers would wait for a
// newer broker. Rounds would keep their bodies in any case: their claim is the next set.
//
// A marker that is sent again: a set that replaces an armed one, and is due later, sends no marker. The old marker,
// when it is read, is sent again for the new time. An older broker drops such a marker, because another set is the last
// entry. So in a rolling upgrade, and after a downgrade, only the sweep would find the timer: at least a minute late,
// and five minutes in a stream of a million. Instead, a set waits before its marker is sent.
//
// For series: a firing, and then a set for the next round, as two publishes. A crash between them ends the series, or
// the recovery makes the round twice.
package timer
