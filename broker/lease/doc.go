// Package lease decides which instance owns which lane. Only the owner reads a lane, moves its messages on, and
// commits. Static gives one instance a fixed set of lanes. With Shared, the instances agree among themselves.
//
// # Terms
//
//	instance  a running broker
//	owner     the instance that has the lease of a lane
//	worker    the loop of the owner that works one lane, and calls Acquire, Held and Release
//	standby   an instance that waits for a lane which another instance owns
//	table     one message: the running instances, and the owner of each lane
//	claim     the entry of a lane in the table: it names the owner, if any, and has an epoch, which rises with each owner
//	counter   one message for each instance, which holds a number
//	beat      an instance's raise of its own counter, once a second; it is good if the leader then shows the new counter
//	tick      a value that Shared sends to a worker after a successful round, while there are other instances
//	call      a message on a plain subject, which no stream stores
//	round     a beat, a read of the table and the counters and, if the table must change, a write and a call
//	liveness  the state of another instance, alive or dead, inferred from its counter and its calls
//	grace     the time for which an instance may act after its last good beat
//	share     the lanes that an instance should own
//
// # The purpose of ownership
//
// Ownership exists for order and efficiency. No promise depends on ownership: two owners of one lane deliver messages
// twice, under one id, and lose none. An owner purges only the messages below its cursor, all of which were delivered
// or moved on. The cursor begins at the stream's first message, or at the previous owner's cursor. A message that
// another owner also has in flight is sent under the same id. The previous owner's cursor is valid only in the stream
// for which it was stored. The time of creation identifies that stream.
//
// So a lease need not be exclusive at every moment. No lease can be exclusive at every moment: a process may be
// suspended between the check of its lease and the next publish. Two requirements remain. Duplicates must be rare, and
// no lane may stay without an owner.
//
// # How instances agree
//
//	delayctl.owners             calls: "read the table", "who is alive?", "I am". No stream stores them.
//	delaysys.owners.beat.<id>   ┐ DELAY_OWNERS   the counters
//	delaysys.owners.table       ┘                the table, replaced as a whole, by compare-and-set
//
// In a round an instance raises its counter. From the stream's leader it reads its new counter message, then the table,
// then the counter of each other instance in the table. Then it computes a new table. If the new table differs from the
// stored one, the instance writes the new table, on condition that the stored message has not changed, and announces
// the change. The instance trusts a server only if that server shows the instance's own beat: for a while, a deposed
// leader answers reads with old counters.
//
//   - An instance that is alone in the table has no regular rounds. It has a round when it receives a call. Every 10 s
//     it reads the table from the leader, because a call may be lost: a call does not cross a leaf node whose link is
//     down, even if the instance's own connection is up. The instance also reads the table after an outage of JetStream
//     (Probe) or of its connection.
//   - Shares are even, among at most MaxOwners instances, with the fewest moves. Every instance computes all shares
//     from the table (see shares), and acts only on its own share: it claims the free lanes of its share, and gives up
//     lanes of other shares. So there is no leader among the instances, and an instance with an outdated table does no
//     harm.
//   - An instance that reads a message of a newer format than its own declines the lane. As long as an instance of a
//     newer format can own the lane, the share of the declining instance does not contain the lane.
//   - After an instance has joined, no lane moves between live instances until the set of instances has been the same
//     for 5 s. An instance that stops drains each lane, frees the lane in the table, stores the cursor there, and sends
//     a call. The next owner starts immediately at that cursor.
//   - An instance is dead if another instance, the observer, has read its counter, and a round that begins 5 s later
//     shows the same counter. The observer's monotonic clock measures the 5 s. If the observer's own rounds fail, the
//     observer starts the measurement again, because the other instance may also have been unable to raise its counter.
//
// # Forged messages
//
// A client may not publish below delaysys. But the server publishes the acknowledgement of a client's message on any
// subject that the client names, even on the table's subject. So every message has a seal (message.Keys). Of a message
// without a valid seal, instances use only the sequence, which the next write has to name. They keep the last good
// table, and write it back. An instance that did not read the last good table writes back an older table. So if an
// instance has newer claims, with higher epochs than the table's claims, it keeps these claims, and writes them back.
// Thus no working owner loses a lane. (In a test without this rule, a client hid every table during 30 restarts, and
// owners lost five lanes.)
//
// A forged counter hides the real counter. Then another instance asks by a call which instances are alive, and each
// answer is a sign of life. Instances read messages by their subjects, so messages on other subjects cost nothing. If a
// client stores an old sealed table or counter again, instances recognize the old message: a counter and the version of
// the table only rise, the version is at least the writer's time, and each table contains the sequence of the message
// that it replaced.
//
// If an instance starts and finds no table in a stream that has stored messages before, it waits 5 s for an instance
// that has the table. While such an instance sends calls, the new instance waits up to 15 s. Then it creates a new
// table. The new table takes no lane from an owner: owners enter their lanes in it, and a lane that is not in the table
// is free only when the set of instances has not changed for 5 s.
//
// # When an owner may no longer act
//
// An instance stops acting on its lanes 5 s after it sent its last good beat: Held returns false. Another instance
// takes over 5 s after it read that beat, which is later. The instance measures the 5 s with the monotonic clock and
// with the wall clock, and uses the longer time, because the monotonic clock stops while a machine is suspended.
//
// But ownership must not stop delivery. An instance whose beats fail may act for longer on three conditions: its grace
// has never ended since the last good beat, the connection is up, and the instance continues to try. Usually the other
// instances also cannot write, and so cannot replace this instance. If only this instance has lost the stream, a lane
// may have two owners until this instance reads the table again. If the leader has no room for a beat, but shows a
// table in which the lane belongs to the instance, no other owner can exist.
//
// While rounds fail, instances send calls, which list their lanes. After 15 s, which is longer than an election, or
// after 5 s if the stream is full, they use these lists in place of the table. Each instance keeps the lanes that only
// its own calls list. A lane that no call lists goes to one of the instances whose calls arrive, by the usual shares
// (see divideByCalls). So even an instance that starts in a full account delivers, although it cannot enter itself in
// the table. Without deliveries the account would stay full. As soon as the instance can write the table, it enters
// those of its lanes that have no live owner in the table.
//
// A lease does not end when Held returns false. If the instance can beat again, and is still the owner in the table, it
// continues with all its messages in flight, and causes no duplicates. Without a release, a lease ends only if the
// table gives the lane away, if a call of another instance claims it in an outage, or if the worker is stuck.
//
// While there are other instances, each worker must also receive a tick after every successful round (Ticks). A worker
// that does not receive the tick within 5 s loses its lane, even if the rest of the process runs. A separate goroutine
// that received the ticks would keep the lane of a stuck worker. After Held has returned false, the next tick shows
// that the worker may call Held again.
//
// An instance that is alone does not raise its counter. It renews a sign of life every 2 s, in memory only. It acts
// only while it is connected and this sign is less than 4 s old. Otherwise it may have missed a call, so it reads the
// table before it acts again.
//
// # Instances that restart
//
// A killed instance stays in the table. Its next run has the same name or the same place, and sends a call. If the
// earlier run does not answer within 300 ms, the new run takes over. If the new run has locked the place, the earlier
// run has ended, and the new run takes over immediately. The operator chooses the name. The broker derives the place
// from the host's name and an address. If two hosts have the same name, and the address is local to each host, two
// instances have the same place by mistake.
//
// If both instances are alive, the younger stops if they have the same name, and continues without a place if only
// their places are equal. Each instance detects the other by a call, or by a change of the other's counter. If no call
// arrived when the younger started, the elder detects the younger in its next read of the table. Until then, both own
// the elder's lanes.
//
// # The situations
//
// Each situation, its outcome, and the test that shows it. A word in parentheses names the variant of the test.
//
//	an instance alone      owns all lanes, one request every 10 s         TestAloneCostsLittle, TestDeniedWorkerGetsTick
//	  peer's call is lost  two owners, for 10 s or until a call           TestAloneDetectsPeer, test/TestTwoOwnersEnd
//	  cut off, back        stops; reads the table before it acts          TestAloneIsCutOff, TestAloneIsCutOffUnanswered
//	  killed, back         resumes in 300 ms; if locked, immediately      TestPlaceIsResumed, TestNameIsResumed
//	several instances      even shares, fewest moves                      TestJoinWaitsAndMovesFewest, TestParallelStart
//	  one stops            its lanes move immediately, with the cursors   TestStopHandsOver
//	  one dies             its lanes move within 5.5 s                    TestCrashIsNoticed
//	  one hangs            loses the lanes whose workers are stuck        TestStuckLoopLosesItsLane
//	  one is cut off       stops before its lanes move; rejoins later     TestCutOff
//	  one is suspended     Held is false; reads the table before it acts  TestGrace
//	  cannot read a lane   a live instance of a newer format owns it      test/TestLaneGoesToNewerInstance
//	  server down          no delivery, no move; same leases afterwards   TestServerAway
//	  same name            the younger stops                              TestSameNameStops,
//	                                                                      TestSameNameWithoutCalls
//	  same place           both own lanes, the younger without place      TestSamePlaceByMistake
//	stream full            every instance keeps its lanes                 TestAloneInOutage, TestSeveralInOutage (full)
//	  one dies             its lanes move within 12 s, by calls           TestCrashInOutage (full)
//	  one stops            its lanes move by calls; no error              TestStopInOutage (full)
//	  one starts           owns the lanes without an owner, within 20 s   TestStartInOutage (full),
//	                                                                      test/TestFullAccountDrains
//	stream deleted         created again if allowed; same leases          TestStreamDeleted
//	  creation forbidden   as if full, but after 15 s instead of 5 s      the same tests (gone), test/TestOwnersGone
//	no leader, no quorum   as if full, but after 15 s instead of 5 s      the same tests (silent)
//	stream purged          no change: an instance writes the table back   TestPurged, test/TestOwnersPurgedThenCrash
//	forged table           no change: an instance writes the table back   TestForgedTable, TestOldTable,
//	                                                                      TestLostClaimIsKept, TestRestartsUnderForgery,
//	                                                                      TestForgedBeforeTable
//	forged counters        no change                                      TestForgedCounter, TestForgedInstances,
//	                                                                      TestForgedCalls
//
// When the stream is usable again, every instance keeps its lanes, and soon the shares are even.
//
// # Tried and rejected
//
//   - Leases that expire by a TTL. A key with a per-key TTL never expires after an update. A bucket's TTL expires
//     claims without an event, by each server's own wall clock. A replicated bucket does not answer for 7 s after its
//     leader dies, so every owner would stop, and all lanes would move, for no reason.
//   - A KV bucket. nats-server denies $KV.> across a leaf node, behind which brokers with DELAY_JS_DOMAIN run, and any
//     replica may answer reads of a bucket. So DELAY_OWNERS has the configuration of a bucket, but subjects below
//     delaysys, where the broker may already publish.
//   - An answer to a call as the only sign of life. A counter also proves that its instance can write. Answers count in
//     addition, because a client may hide a counter, and because in an outage no instance can write.
//   - Reading all messages of the stream in order. A client that stores many messages could delay the reader forever.
//   - Stopping after 15 s without a successful write. In a full account, none of several instances can write, so all
//     would stop, and the account would stay full.
//   - DELAY_OWNERS in memory. After a restart of the servers the cursors are lost, and memory can also be full.
//   - One key for each claim. Whether the shares are even depends on all claims together.
package lease
