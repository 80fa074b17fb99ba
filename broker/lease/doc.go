// Package lease chooses the active instance of a broker: the one that works all lanes. Only the active instance reads
// lanes, moves their messages on, and commits. The instances choose among themselves: each has a Member.
//
// # Terms
//
//	instance  a running broker
//	fleet     the instances of one broker, which have one prefix in one account
//	active    the instance that works all lanes; it has the lease
//	stand-by  any other instance; it takes over when the active one ends
//	claim     one message: which instance is active, and where the last one stopped
//	epoch     a number in the claim that rises each time an instance becomes active
//	beat      a renewal of the claim by the active instance
//	call      a message on a plain subject, which no stream stores
//	turn      a beat of the active instance, or a read of the claim by a stand-by
//	grace     the time for which the active instance may act after its last successful beat
//	able      an instance is able if its connections answer and its loops respond
//
// # The purpose of a lease
//
// A lease exists for order and efficiency. No promise depends on it: two instances that act deliver messages twice,
// under one id, and lose none. An instance purges only the messages below its cursor, all of which were delivered or
// moved on. The cursor begins at the stream's first message, or at the cursor of the previous active instance. A
// message that another instance also has in flight is sent under the same id. A cursor is valid only in the stream for
// which it was stored. The time of creation identifies that stream.
//
// So a lease need not be exclusive at every moment, and none can be: a process may be suspended between the check of
// its lease and the next publish. Two requirements remain. Duplicates must be rare, and the lanes may not stay without
// an instance that works them.
//
// # How instances agree
//
//		delaysys.owners.claim    in DELAY_OWNERS: the claim, replaced by compare-and-set
//		delayctl.owners.all      calls
//		delayctl.owners.<id>     a subscription of each instance; nothing else
//
//	  - The active instance renews its claim every 500 ms while others stand by, and every 2 s while it is alone. The
//	    write names the sequence of the message that it replaces. So a successful write is the proof that no other
//	    instance has taken over, and needs no read.
//	  - A stand-by reads the claim from the stream's leader every 500 ms. It takes over by writing the claim with the
//	    next epoch, on the same condition. Of several stand-bys, one succeeds.
//	  - Instances that stand by call every 500 ms; while they do, so does the active instance. A call says who the sender
//	    is, whether it acts, whether it is able, and which format of messages it reads.
//	  - The best stand-by takes over: an able one before others, then the newest format, then the oldest instance. The
//	    others leave it a second.
//	  - An instance that stops drains its lanes, and writes the claim without an active instance and with its cursors. A
//	    call announces that. The next instance starts immediately at the cursors.
//
// # When a stand-by takes over
//
//	the claim has no active instance, or it has called that it does not act     immediately
//	no new beat, and no call of the active instance, for livenessTimeout        after 5 s
//	the same for silenceTimeout, and the active instance has no subscription    after 0.75 s
//	the active instance was an earlier run of this one                          after 0.3 s, or immediately: see below
//
// The stand-by measures from the time at which it read the last beat, with its monotonic clock. Time in which its own
// reads get no answer does not count. If the connection is lost or a read is refused, the measurement begins again: the
// active instance may also have been unable to beat.
//
// When a process dies, its subscriptions vanish, and the server answers a request to them with "no responders" at once.
// This alone proves little: the active instance may be reconnecting, and the server of the stand-by may not know all
// subscriptions, across a leaf node, a gateway or a new route. So it only shortens the wait for a beat, to a time in
// which a live instance beats. It counts only if the connection of the stand-by has been up for 5 s: after the restart
// of a server, some instances reconnect later than others. The active instance never answers such a request.
//
// # When the active instance may no longer act
//
// An instance stops acting 5 s after it sent its last successful beat: Held returns false. It measures with the
// monotonic clock and with the wall clock, and uses the longer time, because the monotonic clock stops while a machine
// is suspended. It also stops when its connection has been lost for 500 ms, which is shorter than silenceTimeout. Then
// it acts again only after a successful beat.
//
// But a lease must not stop delivery. While its beats fail, the active instance may act for longer on three conditions:
// its grace has never ended since the last successful beat, the server answers pings on the connection, and the
// instance continues to try. Without an answer to a ping, the instance also calls no more: it could not hear that
// another one is active, and its calls could keep the others from taking over. Usually the stand-bys also cannot write,
// and so cannot take over. If the leader has no room for a beat, but shows the claim with this instance, no other one
// can be active.
//
// If turns fail for 15 s, which is longer than an election, or for 5 s in a full stream, the instances choose by calls:
// an instance that acts continues, and if none does, the best stand-by takes over without a claim. So even an instance
// that starts in a full account delivers; without deliveries the account would stay full. When the stream is usable
// again, the instance that acts writes the claim. Of two that act, the one with the higher epoch continues.
//
// A lease does not end when Held returns false. If the instance can beat again, it continues with all its messages in
// flight, and causes no duplicates. Without a release, a lease ends only if the claim or a call shows another active
// instance.
//
// # Active means able
//
// The active instance yields if it is unable (Config.Able) and a stand-by has called since then that it is able. It is
// unable if the server does not answer on one of its connections, or JetStream does not answer on the connection for
// reads or the one for commits, for 3 s, or if a loop is stuck for 5 s. A common cause makes both instances unable, and
// then the active one continues. A stand-by notices a common cause first, because it counts as unable after 1.5 s. The
// holder of the lease has a second to drain and to release, after which the lease ends: an instance with a dead
// connection cannot drain. If it cannot write the release, its next call tells the stand-by. An instance that has
// yielded takes over again only if no better one stands by. In the same way, an instance that meets a message of a
// newer format yields to one that reads the format (Lease.Decline).
//
// # Forged messages
//
// A client may not publish below delaysys. But the server publishes the acknowledgement of a client's message on any
// subject that the client names, even on the claim's subject. So the claim and each call have a seal (message.Keys). Of
// a message without a valid seal, instances use only the sequence, which the next write has to name. The active
// instance writes its claim back with its next beat, and stand-bys keep the last good one. Meanwhile its calls show
// that it lives. An old sealed claim has a lower epoch or version, and an old call a lower number.
//
// If an instance starts and finds no claim in a stream that has stored messages before, it waits 5 s for an active
// instance to write its claim back, or up to 15 s if the calls of another instance show that it knows a claim.
//
// A client that subscribes to delayctl.owners.<id> can forge "no responders", or hide it. The first changes nothing
// while the active instance beats, and the second costs the 4 s that the answer saves.
//
// # Instances that restart
//
// A killed instance stays in the claim. Its next run has the same name or the same place, and sends a call. If the
// earlier run does not answer within 300 ms, the new run takes over. If the new run has locked the place, it takes over
// immediately. The operator chooses the name. The broker derives the place from the host's name and an address. If two
// hosts have the same name, and the address is local to each host, two instances have the same place by mistake.
//
// If both instances are alive, the younger stops if they have the same name, and continues without a place if only
// their places are equal.
//
// # The situations
//
// Each situation, its outcome, and the test that shows it. Tests without a package are here or in test/owners.
//
//	an instance alone        active, one write every 2 s                  TestAlone
//	another one joins        it stands by, nothing moves                  TestJoin, TestParallelStart
//	the active one stops     another continues at its cursors             TestStopHandsOver, TestRollingRestart
//	    a target is silent   another continues after 0.25 s               TestStopWithSilentTarget
//	  is killed              another is active within 1 s                 TestCrash, TestTakeOverAfterCrash
//	  is killed while alone  the next one to start is active after 5 s    TestCrashAlone
//	  hangs, is suspended    stops before another takes over after 5 s    TestGrace, TestFrozenLink
//	  pauses for 2 s         no change                                    TestShortFreeze
//	  reconnects             no change                                    TestReconnect
//	  is cut off             stops before another takes over after 1 s    TestCutOff
//	  has a dead connection  yields to a stand-by                         TestFrozenLink, TestFrozen, TestAble
//	  gets no answers from   yields to a stand-by                         TestUselessLink
//	    JetStream
//	  has a stuck loop       yields to a stand-by                         TestStuckLoop, TestAble
//	  cannot read a format   yields to one that can                       TestFormat
//	  starts again           resumes in 300 ms; if locked, immediately    TestIdentityIsResumed
//	calls do not arrive      no change                                    TestWithoutCalls
//	server down              no delivery, no change afterwards            TestServerAway
//	same name                the younger stops                            TestSameNameStops
//	same place               the younger stands by without a place        TestSamePlaceByMistake
//	stream full, gone,       the active one continues                     TestOutage, TestOwnersGone
//	  or silent
//	  the active one dies    a stand-by is active within 12 s             TestCrashInOutage
//	  the active one stops   a stand-by is active within 12 s             TestStopInOutage
//	  one starts             active within 20 s if no other acts          TestStartInOutage, TestFullAccountDrains
//	stream deleted           created again if allowed                     TestStreamDeleted
//	stream purged            the claim is written back                    TestPurged, TestOwnersPurgedThenCrash
//	forged claim, call       no change                                    TestForgedClaim, TestForgedBeforeClaim,
//	                                                                      TestOldClaim, TestForgedCalls
//	forged "no responders"   no change                                    TestForgedSilence
//	a link between sites     both sites act until it is back              TestTwoOwnersEnd
//	  is down
//
// # Tried and rejected
//
//   - Dividing the lanes among the instances. A burst was not faster: 120,000, 92,000 and 113,000 messages a second
//     with one, two and three brokers on one server, and 70,000, 66,000 and 54,000 on a cluster; a load is divided by
//     prefixes and accounts. An outage was not shorter: over the crashes of three instances in turn, the sum of the
//     lateness of 900 messages was 127.2 s with divided lanes and 127.6 s without, but every crash hurt instead of one
//     in three. The cost was most of what was hard: shares, claims and moves of each lane, a home for each rate, lanes
//     without an owner after one failed release.
//   - A counter for each instance beside the claim. A counter proves that its instance can write, but not that it is
//     still active, so each beat needed a write and two reads. A write of the claim proves both.
//   - Leases that expire by a TTL. A key with a per-key TTL never expires after an update. A bucket's TTL expires
//     claims without an event, by each server's own wall clock. A replicated bucket does not answer for 7 s after its
//     leader dies, so the active instance would stop for no reason.
//   - A KV bucket. nats-server denies $KV.> across a leaf node, behind which brokers with DELAY_JS_DOMAIN run, and any
//     replica may answer reads of a bucket. So DELAY_OWNERS has the configuration of a bucket, but subjects below
//     delaysys, where the broker may already publish.
//   - "No responders" as the only evidence of death. A restart of the only server would cause a take-over whenever a
//     stand-by reconnects first.
//   - Stopping after 15 s without a successful write. In a full account no instance can write, so all would stop, and
//     the account would stay full.
//   - DELAY_OWNERS in memory. After a restart of the servers the cursors are lost, and memory can also be full.
package lease
