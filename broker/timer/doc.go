// Package timer is the state machine of named timers, without NATS: the state of a timer, what it means for a request,
// how far the timers' stream has been read, who in this process is at which firing, and which rounds it has settled.
// Package entry reads and writes the entries themselves. Package store reads them from the stream, and changes timers
// there. Package role decides about those that are due.
//
// # A key is a subject, its last entry is its state
//
// The last message of each subject delaytimer.<key>.<target…> in DELAY_TIMERS is the state of a timer. The sequence of
// a set is its generation.
//
//	                    the leader decides in one order
//	set g ──┬─▶ fired g ──▶ (delivered, in a retry lane, or dead) ──▶ over ──▶ nothing
//	        ├─▶ cancel ──▶ nothing
//	        └─▶ set h     moved, or replaced
//
// Every verdict is one publish that expects generation g to be the last entry of its subject. So of fire, cancel, move
// and replace exactly one wins, whoever publishes it, and a client with nothing but NATS gets exact answers whether the
// broker is up or down.
//
// # Invariants
//
//   - Nothing is delivered before the leader has stored the firing. An acknowledged cancel that expects g is final.
//   - The firing has the body with it. Whoever finds a firing whose instance is gone delivers it from there.
//   - An answer that did not come, or that can mean two things, decides nothing: the leader is asked for the last
//     entry.
//   - What has fired is delivered, whatever a client puts over it who expects nothing. So where something else stands,
//     the leader is asked for what came right behind the generation.
//   - An entry is removed only after all entries before it on its subject, each after the answer for the one before.
//     A server that is killed may forget deletes, the last ones first; so no entry ever stands again without what came
//     after it. (What has a later entry behind it may go at any time.) A firing alone is left out by whoever has not
//     settled it: it stays, and nothing else does that came before.
//   - The cursor is an optimisation, the stream is the truth. Whatever is lost besides the stream makes a timer late,
//     and never loses it: the sweep finds what is overdue.
//   - The sweep looks at what is overdue by a minute, at a take-over and then as often as it costs a hundredth of a
//     core: each minute up to 200,000 timers, each five minutes at a million, and at least hourly. So to arm again what
//     was in a level that somebody purged would gain minutes, for a pass through all timers and a second marker each.
//   - A claim expects its generation, so it is the question whether the generation is still pending: nothing is read
//     before. The body comes from any replica of the stream, ahead of time. An entry never changes, so a copy with the
//     sequence and the time of the generation is that entry, however far the replica lags.
//
// # Cost
//
// Operations for one timer, as TestOperationsOfTimers, TestOperationsOfRounds and TestDueTimersAskNothing count them. A
// copy is an entry that a replica gives, up to 256 of them in one request; a read is a question to the leader.
//
//	                   a timer                               a round of a series
//	when it is armed   the marker; a copy of what stands     the marker of the next round
//	                   first on its subject, unless the
//	                   set expected that there is nothing
//	before it is due   a copy of its entry                   a copy of its entry
//	when it is due     the claim, the delivery               the claim, which is the next round; the delivery
//	after what is due  what became of it; two deletes        one delete
//	without a history  a read; two deletes
//
// A set rests for ten seconds, or half of its delay if that is less, before its marker is sent. A timer that is reset
// every two seconds has no marker, and one entry (TestTimerResetByHeartbeats). While many messages are in memory, sets
// do not rest.
//
// More is read only where an answer is missing or is a refusal, where another instance has settled the round before,
// and where a set fires that was not armed and may have others before it. Without the right to ask replicas, or in a
// stream that does not allow it (allow_direct), a timer is read from the leader when it is due.
//
// The worker removes entries that it knows without reading them. Between a generation and its firing stands nothing,
// because the firing expected the generation; and nothing between the firing and what tells of it. What came before was
// removed when the marker was stored. A server that was killed may have forgotten that: so the last entry of a subject
// is removed only where it is also the first that the leader has. Where an entry stays behind the firing, it hides what
// is back, and goes after it.
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
//	read ahead, then changed       the claim is refused, and it is read     TestTimerChangedAfterItWasRead
//	a replica lags, or lacks it    the leader is asked for this timer       TestCopied
//	an old entry is back           it goes first, or stays hidden           TestRemoveKnownEntries
//	set by a client over a firing  as if it had not been set                TestTimerSetOverItsFiring
//	what was set is over, too      the firing stays                         TestFiringStaysUntilItIsSettled
//	two owners for a moment        one is refused, and waits                TestTimerWithTwoOwners
//	no room                        late, never lost, still to be cancelled  TestTimerWithoutRoom
//	a pass that is cut short       the next, a minute later                 TestSweepAfterTrouble
//	the server is killed           what came after stands, too              TestTimersOnKill, test/fault
//
// # Series
//
// A timer that recurs is a series of rounds. The entry that says that a round has fired is the set of the next round,
// too: one publish, expecting the round. So no round is lost between the two, and none fires twice.
//
//	set g ──▶ round h: g has fired ──▶ round i: h has fired ──▶ … ──▶ fired ──▶ over
//	            └──▶ round k: h was missed, moved or paused, and k is the same round at another time
//
// What holds of a series, besides:
//
//   - A round's own entry is removed when it is settled, and only then; the entry behind it stays, as the next round.
//     So a round is settled if, and only if, its entry is gone and the next one's is known.
//   - A round fires only when those before are settled. So at most one of a series is on its way. A round that was
//     moved, paused or given another table is put in place of one that may follow a round on its way: so it asks for
//     all that is left of its series, and needs no header that says what it follows.
//   - While a round is on its way, the next stays behind it whatever is put over that, and so does what was put there:
//     or a cancelled round would be the last entry again, and pending.
//   - Which round comes next is a pure function of the table, the round and the time: timetable.Table.Decide.
//
// What comes after a crash of a series:
//
//	after                           who goes on                             test
//	round stored, not delivered     whoever has the round before, from it   TestRoundFiredAndNotDelivered
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
// passed, and Delay-Max-Wait after the first one was stored at the latest. So the first set stays in the stream as long
// as its run, and those between are removed as ever.
//
//   - The worker takes from the set before, if that is in memory, with which set the run has begun. A set whose run it
//     does not know is due at once.
//   - Before a set fires earlier than its own Delay-For says, the leader is asked with which set the run has begun:
//     role.Stream.RunOf. So what a worker, a marker or a copy says of a run only ever costs a question.
//   - An entry that has ended a run is removed only after all that came before it, also where it was replaced itself. So
//     where the first set of a run is left, and nothing but debounced sets behind it, the run goes on.
//
//	after                            who goes on                                  test
//	first set stored, not read       as any set: its own run                      TestDebounceThroughCrashes
//	later set stored, not read       the lane's worker asks for the run           TestDebounceThroughCrashes
//	its marker stored                the marker has the time; the run is read     TestDebounceThroughCrashes
//	and the run goes on              the lane's worker asks for the run           TestDebounceThroughCrashes
//	end of a run stored, not read    it stands between, so another run begins     TestDebounceBeginsAnew
//	end read, sets before it left    they go before the end does                  TestDebounceBeginsAnew
//	next run begun, the end left     the end stands between, or all are gone      TestDebounceBeginsAnew
//	run is read while it is removed  the first set is missing: it is read again   TestRunEndsWhileItIsRead
//
// A set a hundred times a second costs the set and one delete, for each; and eight reads when the run ends:
// TestOperationsOfDebounce.
//
// # What was tried and rejected
//
// One message per subject, enforced by the server (max_msgs_per_subject): storing a verdict removes the set in the same
// step, but nats-server 2.15 writes no tombstone for that. When the verdict itself is removed, by a delete or by its
// time to live, a server that is killed finds the set in its blocks again, and nothing behind it: cancelled timers came
// back by the dozen (TestTimersOnKill). Two pipelined deletes for each key did the same (2 of 976): hence an answer for
// each. An atomic batch of record and tombstone is right and slow: 157 a second. Deletes as verdicts: with three
// replicas, a delete of N and a publish that expects N both succeeded in 2,314 of 4,000 races.
//
// Bodies in markers: a timer that is reset at every keystroke leaves a copy of its body in the levels each time.
//
// A claim without a body, which stays in the set. At the due instant it saves the body once: 256 bytes and less than a
// microsecond of 25 for a small body, 64 KiB and 85 µs for a large one. An older broker that finds such a claim would
// deliver an empty body. A newer format would keep it from that; but then, after a downgrade, what had fired would wait
// for a newer broker. Rounds would keep their bodies in any case: their claim is the next set.
//
// A marker that moves on: a set that replaces an armed one, and is due later, sends no marker, and the old marker is
// sent again for the new time when it is read. An older broker drops such a marker, since another set stands there. So
// in a rolling upgrade, and after a downgrade, only the sweep would find the timer: at least a minute late, and five
// minutes in a stream of a million. Instead, a set rests before its marker is sent.
//
// Of series: a firing, and then a set for the next round, as two publishes: a crash between them ends the series, or
// whoever finds it makes two.
package timer
