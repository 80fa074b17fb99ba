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
//	roster    the liveness of the other instances, inferred from their counters and calls
//	grace     the time for which an instance may act after its last good round
//	share     the lanes that an instance should own
//
// # The purpose of ownership
//
// Ownership exists for order and efficiency. No promise depends on it: two owners of one lane deliver messages twice,
// under one id, and lose none. An owner purges only the messages below its cursor, all of which were delivered. Its
// cursor begins at the stream's first message, or at its predecessor's cursor. A message in flight at another owner
// keeps its id. A predecessor's cursor is valid only in its own stream, which the time of creation identifies.
//
// So a lease need not be perfect. It cannot be: a process may be suspended between the check of its lease and the
// publish that follows. Two requirements remain: duplicates must be rare, and no lane may stay without an owner.
//
// # How instances agree
//
//	delayctl.owners             calls: "read the table", "who is alive?", "I am". No stream stores them.
//	delaysys.owners.beat.<id>   ┐ DELAY_OWNERS   the counters
//	delaysys.owners.table       ┘                the table, replaced as a whole, by compare-and-set
//
// In a round an instance raises its counter. From the stream's leader it reads its new counter message, then the table,
// then the counter of each instance in the table. It computes the new table. If the new table differs, the instance
// writes it, on condition that the message to replace is still the one it read, and announces the change. It trusts a
// server only if the answer shows its own beat. A deposed leader still answers reads for a while, with old counters.
//
//   - An instance that is alone does none of this. Its name is in the table. It subscribes to calls, and raises its
//     counter when it receives one. Every 10 s it reads the table from the leader, at no measurable cost. This is
//     necessary because a call does not cross a leaf node whose link is down, even if the instance's own connection is
//     up. It also reads the table after an outage of JetStream (Probe) or of its connection.
//   - Shares are even, among at most MaxOwners instances, with the fewest moves. Every instance computes all shares
//     from the table (see shares), and acts only on its own: it claims free lanes of its share, and gives up lanes of
//     other shares. So no instance leads the others, and an instance with wrong data for a while does no harm.
//   - An instance that reads a message of a newer format than its own declines the lane. As long as an instance of a
//     newer format can own the lane, the lane is in no share of the older one.
//   - After an instance has joined, no lane moves until the set of instances has not changed for 5 s. An instance that
//     stops drains each lane, frees it with the cursor in the table, and calls. The next owner starts immediately at
//     that cursor.
//   - An instance is dead if an observer has read its counter, and a round that begins 5 s later shows the same
//     counter. The observer's monotonic clock measures the 5 s. If the observer's own rounds fail, it starts the
//     measurement again: the other instance could not have raised its counter either.
//
// # Forged messages
//
// A client may not publish below delaysys. But a client chooses the subject of the acknowledgement of its message, and
// that may be the table's subject. So every message has a seal (message.Keys). Instances ignore a message without a
// valid seal, except its sequence, which the next write has to replace. They keep the last good table and write it
// back. An instance that did not read the last good table writes back an older one. So each reader keeps the claims
// with newer epochs, and writes them back in turn. Thus no working owner loses a lane. (Without this rule, 30 restarts
// in turn, while a client hid every table, lost five lanes.)
//
// A forged counter hides the real one. Then the other instances ask its owner by a call, and the answer counts.
// Instances read messages by their subjects, so messages on other subjects cost nothing. If a client stores a sealed
// table or counter again later, instances recognize it as old. Versions and counters only rise, a version is at least
// the writer's time, and each table contains the sequence of the message that it replaced.
//
// If an instance starts and finds no table in a stream that has stored messages before, it waits 5 s for an instance
// that knows the table. Then it creates a new table. This takes no lane from an owner. Owners enter their lanes in the
// new table, and a lane in no table is free only when the set of instances has not changed for 5 s.
//
// # When an owner stops
//
// An instance stops 5 s after it sent its last good beat: Held is false. An observer counts from the time it read that
// beat, which is later. Both measure with the monotonic clock and the wall clock, and use the longer time, since the
// monotonic clock stops while a machine is suspended.
//
// But ownership must not stop delivery. While its beats fail, an instance keeps its grace on three conditions: the
// grace has held without a gap, the connection is up, and the instance continues to try. Other instances cannot write
// either, and so cannot replace it. Only if this instance alone has lost the stream, a lane has two owners until the
// instance reads the table again. If a leader has no room for the write, and shows a table in which the lane belongs to
// the instance, no other owner can exist.
//
// While rounds fail, instances announce their lanes in calls. They act by these calls after 15 s, which is longer than
// an election, or after 5 s of "no room". Each instance keeps its lanes. A lane that no call names goes to one of the
// instances whose calls arrive, by the usual shares (see assume). So even an instance that starts in a full account,
// and cannot enter itself in the table, delivers. Without deliveries the account would stay full. The instance enters
// such a lane as soon as it can write the table and the table has no live owner of the lane.
//
// A lease does not end when Held returns false. If the instance can beat again and is still the owner in the table, it
// continues with all its messages in flight and repeats none. Only the table, or in an outage the call of another
// instance, ends a lease (Done).
//
// Every good round sends each worker a beat. A worker that does not receive the beat within 5 s loses its lane, even if
// the rest of the process runs. A separate goroutine that beats would keep a lane with a stuck owner. If Held returned
// false, the worker gets a beat when Held is true again.
//
// An instance that is alone does not beat. It renews its own sign of life every 2 s, in memory only. It acts only while
// it is connected and this sign is less than 4 s old. Otherwise it may have missed a call, and first reads the table.
//
// # Instances that restart
//
// A killed instance stays in the table. Its next run has the same name or the same place, and calls it. If there is no
// answer within 300 ms, the new run takes over. If the place is locked, it does so immediately. The operator chooses
// the name. The place is a guess, derived from a host's name and an address. It is wrong if two hosts have the same
// name and the address is local to each. If both instances are alive, the younger yields: it stops if the name is the
// same, and continues without a place if only the place is. They notice each other by a call or a change of the
// counter. If no call arrived at the start, the elder notices when it next reads the table. Until then both own the
// lanes.
//
// # The situations
//
// Each situation, its outcome, and the test that shows it.
//
//	alone                  owns everything, one request every 10 s        TestAloneCostsLittle, TestDeniedIsToldWhenHeld
//	  joined, no call      two owners; ends within 10 s, or by a call     TestAloneFindsOut, test/TestTwoOwnersEnd
//	  cut off, back        stops; reads the table first                   TestAloneIsCutOff, TestAloneIsCutOffUnanswered
//	  killed, back         resumes in 300 ms; locked: at once             TestPlaceIsResumed, TestNameIsResumed
//	several                even shares, fewest moves                      TestJoinWaitsAndMovesFewest, TestStartAtOnce
//	  one stops            handed over at once, with the cursor           TestStopHandsOverAtOnce
//	  one dies             taken over within 5.5 s                        TestCrashIsNoticed
//	  one hangs            loses the lanes whose workers are stuck        TestStuckLoopLosesItsLane
//	  one cut off          stops before it is replaced; shares when back  TestCutOff
//	  suspended            not held when it wakes; reads the table first  TestGrace
//	  cannot read a lane   a newer instance owns it while one lives       test/TestLaneGoesToNewerInstance
//	  server away          no delivery, no takeover; same leases after    TestServerAway
//	  same name            the younger stops                              TestSameNameStops,
//	                                                                      TestSameNameWithoutCalls
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
// "As full" ends when the stream is usable again. Every instance keeps its lanes, and soon the shares are even.
//
// # Tried and rejected
//
//   - Leases that expire by a TTL. A per-key TTL and an update make a key immortal. A bucket's TTL expires claims
//     without an event, by each server's own wall clock. A replicated bucket does not answer for 7 s after its leader
//     dies, so every owner would stop, and all lanes would move, for no reason.
//   - A KV bucket. The stream is configured like a bucket, under another name. But nats-server denies $KV.> across a
//     leaf node, where brokers with DELAY_JS_DOMAIN run, and any replica may answer reads of a bucket. The broker
//     already has permission to publish below delaysys.
//   - An answer to a call as the only sign of life. A counter also proves that its owner can write. Calls count too,
//     for a hidden counter and for times when no instance can write.
//   - Reading all stored messages in order. A client that stores many messages there would delay it without end.
//   - Stopping after 15 s in which no instance could write. In a full account, two or more instances would wait
//     forever.
//   - DELAY_OWNERS in memory. After a restart of the servers the cursors are lost, and memory can be full, too.
//   - One key for each claim. Even shares are a property of all claims together.
package lease
