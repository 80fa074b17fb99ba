// Package owners decides which instance owns which lane. An owner alone reads its lane, moves its messages on, and
// commits. Static gives one instance what it is told; Shared lets instances agree among themselves.
//
// # What ownership is for
//
// For order and economy: no promise rests on it. Two owners of one lane deliver twice, under one id, and lose nothing. An
// owner purges only up to its cursor, below which it has itself seen everything arrive, and begins at the stream's first
// message, or where its predecessor says that everything below has arrived. So whatever one of them purges has arrived,
// whoever moved it, and a message that the other still holds is one that it will find again under the id it had. What a
// predecessor says counts only in the stream it spoke of, which is known by the time it was created.
//
// So a lease need not be perfect, and cannot be: a process may be stopped between asking whether a lane is its own and
// the publish that follows. It must be good enough that copies are rare, and it must never leave a lane without an owner.
//
// # How instances agree
//
//	delayctl.owners             a word on a plain subject: "look". Nobody stores it.
//	delaysys.owners.beat.<id>   ┐ DELAY_OWNERS   a counter of each instance, raised every second while there are others
//	delaysys.owners.table       ┘                who is there, and who owns what: replaced as a whole, by compare-and-set
//
// A round is: raise one's counter; read, from the stream's leader, all that was stored since the last round, up to one's
// own counter; make the table as it should be; write it, if that changes anything, on condition that it is still the one
// that was read; call the others. Only who reads its own write back knows that it has seen what was stored before: a
// leader that was deposed answers reads for a while, and shows counters that stand still.
//
//   - An instance that is alone does none of this. Its name is in the table; it listens for a call, and raises its
//     counter as soon as it hears one. It costs the servers nothing.
//   - Shares are even, among at most MaxOwners instances, with the fewest moves: see shares, which every instance computes
//     for itself from the table. Each acts only on its own part: it claims what is free and should be its own, and gives
//     up what should be another's. So no instance is a leader, and it does not matter if one of them is wrong for a while.
//   - An instance that joins waits until the same instances have been there for 5 s. One that stops drains each lane,
//     frees it with the cursor in the table, and calls: the next owner starts there, at once.
//   - An instance is dead when an observer has read its counter, and 5 s later on its own monotonic clock begins a round
//     that shows the same counter. The time in which the observer's own rounds fail does not count, and starts the count
//     anew: the dead could not have beaten either. With a name that the operator promises to be unique, an instance that
//     starts again waits 1 s for its former self.
//
// # How an owner stops in time
//
// An owner counts from the sending of its last good beat, and stops acting after 5 s: Held is false. An observer counts
// from its reading of that beat, which is later. Both the monotonic and the wall clock count, since the former stands
// still while a machine is suspended. If nobody answers beats at all, nobody can take over either, and the owner goes on
// for 15 s: an election in the bucket takes up to 9. It cannot tell that from being cut off from the bucket alone, while
// its other connections live; then there are two owners for ten seconds, at worst.
//
// Held does not end a lease. When the instance can beat again and the table still says that the lane is its own, it goes
// on with all it held, and repeats nothing. Only the table ends a lease (Done).
//
// Every good round gives each lane's loop a beat to take. A loop that leaves one lying for 5 s loses its lane, whatever
// the rest of the process does: beating from a goroutine of its own would keep a lane with an owner that does not work.
//
// An instance that is alone does not beat, so it trusts itself only while its own sign of life, every 2 s and unsaid, is
// less than 4 s old, and while it is connected: otherwise it may have missed a call, and reads the table before it goes on.
//
// # What was tried and rejected
//
//   - Leases that expire by a TTL. A per-key TTL and an update make a key immortal, a bucket's TTL expires claims without
//     an event and by each server's own wall clock, and a replicated bucket is silent for 7 s when its leader dies: every
//     owner would stop, and everything move, for nothing.
//   - A KV bucket. This is one but for its name: nats-server denies $KV.> across a leaf node, where brokers live that use
//     DELAY_JS_DOMAIN, and reads of a bucket go to any replica. Below delaysys the broker may publish already.
//   - An answer to a call. The counter is the answer, and says at the same time that its owner can write.
//   - One key for each claim. Even shares are a statement about all of them.
package owners
