// Package lease decides which instance owns which lane. An owner alone reads its lane, moves its messages on, and
// commits. Static gives one instance what it is told; Shared lets instances agree among themselves.
//
// # What ownership is for
//
// For order and economy: no promise rests on it. Two owners of one lane deliver twice, under one id, and lose nothing.
// An owner purges only up to its cursor, below which it has itself seen everything arrive, and begins at the stream's
// first message, or where its predecessor says that everything below has arrived. So whatever one of them purges has
// arrived, whoever moved it, and a message that the other still holds is one that it will find again under the id it
// had. What a predecessor says counts only in the stream it spoke of, which is known by the time it was created.
//
// So a lease need not be perfect, and cannot be: a process may be stopped between asking whether a lane is its own and
// the publish that follows. It must be good enough that copies are rare, and it must never leave a lane without an
// owner.
//
// # How instances agree
//
//	delayctl.owners             a word on a plain subject: "look", "who lives?", "I do". Nobody stores it.
//	delaysys.owners.beat.<id>   ┐ DELAY_OWNERS   a counter of each instance, raised every second while there are others
//	delaysys.owners.table       ┘                who is there, and who owns what: replaced as a whole, by compare-and-set
//
// A round is: raise one's counter; read from the stream's leader what was just written, then the table, then the
// counter of each instance in it; make the table as it should be; write it, if that changes anything, on condition that
// it still replaces the one that was read; call the others. Only of whoever shows our own write is anything believed: a
// leader that was deposed answers reads for a while, and shows counters that stand still.
//
//   - An instance that is alone does none of this. Its name is in the table; it listens for a call, and raises its
//     counter as soon as it hears one. Every 10 s it asks the leader for the table, which costs nothing that could be
//     measured: a call does not cross a leaf node whose link is down, however well the instance's own connection is. It
//     looks at once when JetStream was away (Probe), or its connection.
//   - Shares are even, among at most MaxOwners instances, with the fewest moves: see shares, which every instance
//     computes for itself from the table. Each acts only on its own part: it claims what is free and should be its own,
//     and gives up what should be another's. So no instance is a leader, and it does not matter if one of them is wrong
//     for a while.
//   - An instance that joins waits until the same instances have been there for 5 s. One that stops drains each lane,
//     frees it with the cursor in the table, and calls: the next owner starts there, at once.
//   - An instance is dead when an observer has read its counter, and 5 s later on its own monotonic clock begins a
//     round that shows the same counter. The time in which the observer's own rounds fail does not count, and starts
//     the count anew: the dead could not have beaten either.
//
// # Who wrote it
//
// A client may not publish below delaysys, but NATS lets it say where the acknowledgement of a message of its own goes,
// and that may be the table. So everything carries a seal (Sealer), and what has none is not there. The last good table
// stays the table; of the other message only the sequence counts, which the next write replaces, and the good table is
// written back. An unsealed counter hides the real one: then the instance is asked, and its word counts. Messages are
// asked for by name, so what lies beside them costs nothing. A table or counter that was sealed and is brought back
// later is known as old: versions and counters only rise, a version is at least the writer's time, and each table names
// what it replaced.
//
// Who starts and finds no table, in a stream where something was stored before, waits 5 s for those who know one, and
// then founds it anew. That takes nothing from anybody: owners enter their lanes in it, and lanes that are in no table
// are free only when the same instances have been there for 5 s.
//
// # How an owner stops in time, and when it does not
//
// An owner counts from the sending of its last good beat, and stops acting after 5 s: Held is false. An observer counts
// from its reading of that beat, which is later. Both the monotonic and the wall clock count, since the former stands
// still while a machine is suspended.
//
// But ownership must not be what stops delivery. An owner that was in good standing, is connected and keeps trying goes
// on while its beats fail: what it cannot write, others cannot write either, and so not replace it. It may be wrong,
// when it is cut off from the bucket alone; then there are two owners until it reads the table again. When a leader
// says that there is no room, and shows a table in which the lane is ours, it is not even wrong.
//
// While rounds fail, instances say on the plain subject what they have. After 15 s, which an election does not take, or
// 5 s of "no room", they go by that: each keeps what it has, and what nobody says that he has goes to those who are
// heard, by the same shares (assume). So a broker that starts in a full account, where it can enter itself nowhere,
// works all the same: otherwise nothing would be delivered, and there would never be room. A lane taken so is entered
// in the table when that can be written and names nobody who lives.
//
// Held does not end a lease. When the instance can beat again and the table still says that the lane is its own, it
// goes on with all it held, and repeats nothing. Only the table, or another's word in an outage, ends a lease (Done).
//
// Every good round gives each lane's loop a beat to take. A loop that leaves one lying for 5 s loses its lane, whatever
// the rest of the process does: beating from a goroutine of its own would keep a lane with an owner that does not work.
// A loop that was told No gets a beat when it is Yes again.
//
// An instance that is alone does not beat, so it trusts itself only while its own sign of life, every 2 s and unsaid,
// is less than 4 s old, and while it is connected: otherwise it may have missed a call, and reads the table before it
// goes on.
//
// # Who comes back
//
// An instance that is killed leaves a ghost in the table. One that starts with the same name, or at the same place,
// asks it, and takes over if it has not answered after 300 ms: at once if the place is locked. A name is the operator's
// word. A place is a guess, a host's name and an address it listens on, and wrong where two hosts have one name and the
// address is local to each. So of two that live, the younger stops if they share a name, and goes on without if they
// share a place. They notice when one hears the other, or sees its counter move; if not at the start, because they
// could not hear each other, then as soon as the elder reads the table: until then both own.
//
// # The situations
//
// What happens, how it ends, and the test that shows it.
//
//	alone                  owns everything, one question every 10 s          TestAloneCostsLittle, TestDeniedIsToldWhenHeld
//	  joined unheard       two owners; ends within 10 s, or told at once     TestAloneFindsOut, test/TestTwoOwnersEnd
//	  cut off, back        stops at once; looks first                        TestAloneIsCutOff
//	  killed, back         resumes in 300 ms; locked: at once                TestPlaceIsResumed, TestNameIsResumed
//	several                even shares, fewest moves                         TestJoinWaitsAndMovesFewest, TestStartAtOnce
//	  one stops            handed over at once, with the cursor              TestStopHandsOverAtOnce
//	  one dies             taken over within 5.5 s                           TestCrashIsNoticed
//	  one hangs            loses the lanes whose loops do not turn           TestStuckLoopLosesItsLane
//	  one cut off          stops before it is replaced; shares when back     TestCutOff
//	  suspended            not held when it wakes; reads the table first     TestStanding
//	  server away          nobody acts or takes over; same leases after      TestServerAway
//	  same name            the younger stops                                 TestNamesakeStops, TestNamesakesThatMissedEachOther
//	  same place           share, the younger without it                     TestSamePlaceByMistake
//	stream full            all go on for as long as it takes                 TestAloneInOutage, TestSeveralInOutage (full)
//	  one dies             taken over within 12 s, by word                   TestCrashInOutage (full)
//	  one stops            the same; the stop is no error                    TestStopInOutage (full)
//	  one starts           owns what nobody has, within 20 s                 TestStartInOutage (full), test/TestFullAccountDrains
//	stream gone            created anew if that is allowed; same leases      TestStreamDeleted
//	  not allowed          as full, 15 s instead of 5                        the same tests (gone), test/TestOwnersGone
//	no leader, no quorum   as gone                                           the same tests (silent)
//	stream purged          nothing: who knows the table writes it back       TestPurged, test/TestOwnersPurgedThenCrash
//	forged table           nothing: likewise                                 TestForgedTable, TestOldTable, TestForgedBeforeAnybody
//	forged counters        nothing                                           TestForgedCounter, TestForgedElsewhere, TestForgedCalls
//
// "As full" ends when the stream is back: everybody keeps what it has, and soon the shares are even.
//
// # What was tried and rejected
//
//   - Leases that expire by a TTL. A per-key TTL and an update make a key immortal, a bucket's TTL expires claims
//     without an event and by each server's own wall clock, and a replicated bucket is silent for 7 s when its leader
//     dies: every owner would stop, and everything move, for nothing.
//   - A KV bucket. This is one but for its name: nats-server denies $KV.> across a leaf node, where brokers live that
//     use DELAY_JS_DOMAIN, and reads of a bucket go to any replica. Below delaysys the broker may publish already.
//   - An answer to a call as the only sign of life. The counter says at the same time that its owner can write. A word
//     counts besides, where the counter is hidden, or can be written by nobody.
//   - Reading all that is stored, in order. A client that has much put there makes it endless.
//   - Stopping after 15 s in which nobody could write. It made a full account a deadlock of two or more instances.
//   - DELAY_OWNERS in memory: a restart of the servers forgets the cursors, and memory is full at times, too.
//   - One key for each claim. Even shares are a statement about all of them.
package lease
