// Package lease decides which instance owns which lane. Only the owner reads a lane, moves its messages on, and
// commits. Static gives one instance a fixed set of lanes. With Shared, the instances agree among themselves.
//
// # Terms
//
//	instance  a running broker
//	owner     the instance that has the lease of a lane
//	worker    the loop of the owner that works one lane, and calls Acquire, Held and Release
//	stand by  to wait for a lane that another instance owns
//	table     one message: the running instances, and the owner of each lane
//	counter   one message for each instance, which the instance raises every second; to raise it is a beat
//	call      a message on a plain subject, which no stream stores
//	round     the unit of work: beat, read the table and the counters, write the table, announce the change
//	roster    the liveness of the other instances, as an instance infers it from their counters and calls
//	grace     the time for which an instance may act without another good round
//	share     the lanes that an instance should own
//
// # The purpose of ownership
//
// Ownership exists for order and efficiency. No promise depends on it: two owners of one lane deliver messages twice,
// under one id, and lose none. An owner purges only up to its cursor, and has seen every message below the cursor
// delivered. It begins at the stream's first message, or at its predecessor's cursor, below which every message was
// delivered. So every message that an owner purges was delivered, by this owner or another. A message that another
// owner still has in flight keeps its id. A predecessor's cursor is valid only in its own stream, which the time of
// creation identifies.
//
// So a lease need not be perfect, and cannot be: a process may be suspended between the check of its lease and the
// publish that follows. Two requirements remain. Duplicates must be rare, and no lane may stay without an owner.
//
// # How instances agree
//
//	delayctl.owners             calls: "read the table", "who is alive?", "I am". No stream stores them.
//	delaysys.owners.beat.<id>   ┐ DELAY_OWNERS   the counters
//	delaysys.owners.table       ┘                the table, replaced as a whole, by compare-and-set
//
// In a round an instance raises its counter. It reads the message it just wrote from the stream's leader, then the
// table, then the counter of each instance in the table. It computes the new table. If that differs, it writes it, on
// condition that the message it replaces is still the one it read, and announces the change. It trusts a server only if
// the answer shows its own beat: for a while, a deposed leader still answers reads, and shows old counters.
//
//   - An instance that is alone does none of this. Its name is in the table. It subscribes to calls, and raises its
//     counter when it receives one. Every 10 s it reads the table from the leader, at no measurable cost: a call does
//     not cross a leaf node whose link is down, even if the instance's own connection is up. It reads it at once after
//     an outage of JetStream (Probe), or of its connection.
//   - Shares are even, among at most MaxOwners instances, with the fewest moves. Every instance computes all shares
//     from the table (see shares), and acts only on its own part: it claims free lanes of its share, and gives up lanes
//     of other shares. So no instance is a leader, and an instance that is wrong for a while does no harm.
//   - An instance that reads a message of a newer format than its own declines the lane. While an instance of a newer
//     format would work the lane, the one that declined it has no share in it.
//   - After an instance has joined, no lane moves until the set of instances has not changed for 5 s. An instance that
//     stops drains each lane, frees it with the cursor in the table, and calls. The next owner starts there at once.
//   - An instance is dead when an observer has read its counter, and a round that begins 5 s later, by the observer's
//     own monotonic clock, shows the same counter. If the observer's own rounds fail, it starts to count again, because
//     the other instance could not have raised its counter either.
//
// # Forged messages
//
// A client may not publish below delaysys. But NATS lets it choose the subject of the acknowledgement of one of its
// messages, and that may be the table's. So every message has a seal (message.Keys), and instances ignore a message
// without a valid one. Of a forged table they use only the sequence, because the next write has to replace it. The last
// good table stays the table, and they write it back. An instance that did not read the last good table writes back an
// older one. So each reader keeps the claims that are newer, by their epochs, and writes them back in turn. Then no
// working owner loses a lane. (Without this, 30 restarts in turn, while a client hid every table, lost five.)
//
// A forged counter hides the real one. Then the other instances ask its owner by a call, and the answer counts.
// Instances read messages by their subjects, so messages on other subjects cost nothing. If a client stores a sealed
// table or counter again later, instances recognize it as old: versions and counters only rise, a version is at least
// the writer's time, and each table contains the sequence of the message it replaced.
//
// An instance that starts and finds no table, in a stream that has stored messages before, waits 5 s for an instance
// that knows the table. After that it founds a new one. This takes no lane from an owner: owners enter their lanes in
// the new table, and a lane that is in no table is free only when the set of instances has not changed for 5 s.
//
// # When an owner stops, and when it does not
//
// An instance counts from the sending of its last good beat, and stops after 5 s: Held is false. An observer counts
// from its reading of that beat, which is later. It uses the longer time of two clocks, the monotonic clock and the
// wall clock, since the monotonic clock stops while a machine is suspended.
//
// But ownership must not stop delivery. While its beats fail, an instance keeps its grace if the grace held so far, the
// connection is up, and it goes on trying. Others cannot write either, and so cannot replace it. Only if the instance
// alone is cut off from the stream, there are two owners until it reads the table again. If a leader refuses the write
// because it has no room, and shows a table in which the lane belongs to the instance, no other owner can exist.
//
// While rounds fail, instances announce their lanes in calls. After 15 s, which is longer than an election, or after 5
// s of "no room", they act by these calls. Each instance keeps its lanes. The lanes that no call names go to the
// instances whose calls arrive, by the usual shares (see assume). So a broker works even if it starts in a full account
// and cannot enter itself in the table. Otherwise no message would be delivered, and there would never be room. An
// instance enters such a lane in the table as soon as it can write the table and the table has no live owner of the
// lane.
//
// A lease does not end when Held returns false. When the instance can beat again and is still the owner in the table,
// it goes on with all its messages in flight and repeats none. Only the table, or in an outage the call of another
// instance, ends a lease (Done).
//
// Every good round sends each worker a beat. A worker that does not receive it within 5 s loses its lane, whatever the
// rest of the process does. Beats from a separate goroutine would keep a lane with an owner that does not work. A
// worker for which Held returned false gets a beat when Held is true again.
//
// An instance that is alone does not beat. So it trusts itself only while it is connected, and while its own sign of
// life is less than 4 s old. It renews that sign every 2 s, in memory only. Otherwise it may have missed a call, and
// reads the table before it goes on.
//
// # Instances that come back
//
// A killed instance stays in the table. Its next run, with the same name or at the same place, calls it. The new run
// takes over if there is no answer within 300 ms, or at once if the place is locked. The operator chooses the name. The
// place is a guess, made of a host's name and an address. It is wrong if two hosts have one name and the address is
// local to each. So if both instances are alive, the younger stops if they share a name, and goes on without a place if
// they share that. They notice it when one receives a call of the other, or sees its counter change. If no call arrived
// at the start, the elder notices when it next reads the table. Until then both own the lanes.
//
// # The situations
//
// Each situation, its outcome, and the test that shows it.
//
//	alone                  owns everything, one request every 10 s        TestAloneCostsLittle, TestDeniedIsToldWhenHeld
//	  joined, no call      two owners; ends within 10 s, or by a call     TestAloneFindsOut, test/TestTwoOwnersEnd
//	  cut off, back        stops at once; reads the table first           TestAloneIsCutOff, TestAloneIsCutOffUnanswered
//	  killed, back         resumes in 300 ms; locked: at once             TestPlaceIsResumed, TestNameIsResumed
//	several                even shares, fewest moves                      TestJoinWaitsAndMovesFewest, TestStartAtOnce
//	  one stops            handed over at once, with the cursor           TestStopHandsOverAtOnce
//	  one dies             taken over within 5.5 s                        TestCrashIsNoticed
//	  one hangs            loses the lanes whose workers are stuck        TestStuckLoopLosesItsLane
//	  one cut off          stops before it is replaced; shares when back  TestCutOff
//	  suspended            not held when it wakes; reads the table first  TestGrace
//	  cannot read a lane   a newer instance owns it while one lives       test/TestLaneGoesToNewerInstance
//	  server away          no delivery, no takeover; same leases after    TestServerAway
//	  same name            the younger stops                              TestNamesakeStops,
//	                                                                      TestNamesakesThatMissedEachOther
//	  same place           share, the younger without a place             TestSamePlaceByMistake
//	stream full            all go on for as long as it takes              TestAloneInOutage, TestSeveralInOutage (full)
//	  one dies             taken over within 12 s, by calls               TestCrashInOutage (full)
//	  one stops            the same; the stop is no error                 TestStopInOutage (full)
//	  one starts           owns the lanes without an owner, within 20 s   TestStartInOutage (full),
//	                                                                      test/TestFullAccountDrains
//	stream gone            created again if allowed; same leases          TestStreamDeleted
//	  not allowed          as full, 15 s instead of 5                     the same tests (gone), test/TestOwnersGone
//	no leader, no quorum   as gone                                        the same tests (silent)
//	stream purged          no change: an instance writes the table back   TestPurged, test/TestOwnersPurgedThenCrash
//	forged table           no change: likewise                            TestForgedTable, TestOldTable,
//	                                                                      TestLostClaimIsKept, TestRestartsUnderForgery,
//	                                                                      TestForgedBeforeAnybody
//	forged counters        no change                                      TestForgedCounter, TestForgedElsewhere,
//	                                                                      TestForgedCalls
//
// "As full" ends when the stream is back: every instance keeps its lanes, and soon the shares are even.
//
// # Tried and rejected
//
//   - Leases that expire by a TTL. A per-key TTL and an update make a key immortal. A bucket's TTL expires claims
//     without an event, by each server's own wall clock. And a replicated bucket is silent for 7 s when its leader
//     dies: every owner would stop, and everything would move, for no reason.
//   - A KV bucket. The stream is configured like one, under another name. But nats-server denies $KV.> across a leaf
//     node, where brokers with DELAY_JS_DOMAIN run, and reads of a bucket go to any replica. Below delaysys the broker
//     already has permission to publish.
//   - An answer to a call as the only sign of life. A counter also proves that its owner can write. Calls count in
//     addition, if the counter is hidden or if no instance can write.
//   - Reading all stored messages in order. A client that stores many messages there would make that endless.
//   - Stopping after 15 s in which no instance could write. That made a full account a deadlock of two or more
//     instances.
//   - DELAY_OWNERS in memory. A restart of the servers forgets the cursors, and memory is full at times, too.
//   - One key for each claim. Even shares are a property of all claims together.
package lease
