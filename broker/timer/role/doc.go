// Package role is the timer logic of a lane's worker: the progress of each firing (Alarm), the next step of each timer
// (Step), and the stream of the entries (Stream). Package timer describes entries, costs, invariants and crashes.
//
// # An alarm
//
// A named timer is a message like any other, with two exceptions. Before the message is sent, the leader must have
// stored the firing. After the message is delivered, the timer's entries are removed.
//
//	stage      event                                                      next stage
//	           the lane has read a set                                    pending
//	           the lane has read a marker                                 doubt
//	pending    due, and the firing is stored                              fired
//	           due, and another entry came first, or the answer is lost   doubt
//	           replaced before it is due, or a level stores its marker    settled
//	doubt      the last entry is the set                                  pending
//	           an entry is the firing of the set                          fired
//	           the set is replaced, cancelled or removed                  (the alarm ends)
//	fired      the message has arrived                                    settled
//	settled    the entries are removed                                    (the alarm ends)
//
// The worker calls Alarm.Next before its own decisions, and carries out the returned steps. It passes each answer back
// to this package. AfterClaim, AfterOutcome, AfterRemoval, Copied and Examined return the next step, and send no
// request to NATS.
//
// # The stream
//
// A commit records how far a lane has come. In other lanes, it purges the messages that have arrived. In the timers'
// stream, the entries of pending timers stay, so a commit stores a cursor in this stream (StoreCursor). A pass of the
// Sweep finds timers whose marker was lost with its level, and entries whose removal was lost. The pass also reseals
// pending entries that are sealed with a key other than the first, so that the operator can remove that key. It counts
// the entries that are sealed with an unknown key.
//
// # Reads
//
//   - A marker has no body. Up to three seconds before the timer is due, its entry is read from any replica, together
//     with the entries of up to 255 other timers (ReadCopies). If memory is short, the entry is read when the timer is
//     due.
//   - The worker asks replicas only where an old answer does no harm: see Copied and RemoveEntries. During the backoff
//     after a failed request, it reads due timers from the leader. A longer first backoff was tried: when 100,000
//     rounds were due at the same time, a busy server answered too late, and 60,000 reads from the leader made the
//     server busier.
//   - After an ambiguous answer to a claim, only a read from the leader shows whether the timer has fired.
//   - The rounds of many series may be due at the same minute, so the worker saves reads. If this process has settled
//     the earlier rounds, the worker does not read them (KnowsEarlierRounds). Otherwise, it reads them before the round
//     is due. If the worker reads a round from the leader, one read returns the round's entry and usually proves that
//     no earlier entry is left (ReadRoundState). Then the worker later removes only the round's entry. The entry of a
//     fired round stays until that round is settled, even if a level has stored the marker of the next round.
//
// # Tried and rejected
//
// A package that holds the messages, publishes, and waits for answers: it duplicated the worker's mailbox, memory,
// lease and stop. This package has no goroutine, and the worker carries out its steps.
//
// This logic among the worker's own files: one in four references between those files was for timers.
package role
