// Package role is the timer logic of a lane's worker: the state of each timer in memory (Alarm), its next step (Step),
// the timers of a lane (Lane), and the stream of the entries (Stream). Package timer describes entries, costs,
// invariants and crashes.
//
// # An alarm
//
// A named timer is a message like any other, with two exceptions. Before the message is sent, the leader must have
// stored the firing. After the message is delivered, the timer's entries are removed. Only this package changes an
// alarm. These are its states; "-" means that the alarm ends.
//
//	state      event                                                    next state
//	           the timers' lane has read a set                          pending
//	           a level's lane has read a marker                         copyable
//	           the lane or the sweep has found an old firing            doubt
//	copyable   a replica has shown the set                              pending
//	           a replica has shown another entry, or does not answer    unread
//	           a replica has shown that the set is cancelled            -
//	unread     the leader is asked                                      doubt
//	pending    due, and the firing is stored                            fired
//	           due, and another entry came first, or the answer is lost doubt
//	           its round was missed, or a level stores its marker       settled
//	           the lane has read an entry that replaces the set         replaced
//	           the lane has read an entry that may be the firing        doubt
//	replaced   the worker decides again                                 settled
//	doubt      the last entry is the set                                pending
//	           an entry is the firing of the set                        fired
//	           the set is replaced, cancelled or removed                -
//	fired      the message has arrived                                  arrived
//	arrived    the outcome is stored                                    settled
//	           the entries are removed                                  -
//	settled    the entries are removed                                  -
//
// # The worker
//
// The worker has the alarm's message, memory, turns and connections. It asks Alarm.Next for a step before its own
// decisions, and carries out the step. For the steps Read and Remove, it runs the function that Alarm.Request returns,
// on another goroutine. For the step Claim, it publishes the entry that Alarm.Claim returns. Each request ends with an
// Event. The worker gives the event to Alarm.Handle, which returns the next step. Alarm.Arrived ends the delivery, and
// Alarm.End the alarm.
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
//   - The worker asks replicas only where an old answer does no harm: see copied and removeEntries. During the backoff
//     after a failed request, it reads due timers from the leader. A longer first backoff was tried: when 100,000
//     rounds were due at the same time, a busy server answered too late, and 60,000 reads from the leader made the
//     server busier.
//   - After an ambiguous answer to a claim, only a read from the leader shows whether the timer has fired.
//   - The rounds of many series may be due at the same minute, so the worker saves reads. If this process has settled
//     the earlier rounds, the worker does not read them (settledRounds). Otherwise, it reads them before the round
//     is due. If the worker reads a round from the leader, one read returns the round's entry and usually proves that
//     no earlier entry is left (readRoundState). Then the worker later removes only the round's entry. The entry of a
//     fired round stays until that round is settled, even if a level has stored the marker of the next round.
//
// # Tried and rejected
//
// A package that holds the messages, publishes, and waits for answers: it duplicated the worker's mailbox, memory,
// lease and stop. This package has no goroutine, and the worker carries out its steps.
//
// This logic among the worker's own files: one in four references between those files was for timers.
package role
