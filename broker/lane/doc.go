// Package lane reads one ordered stream from a cursor, for one owner, and commits behind the cursor. A delay level, the
// intake and a retry delay are all lanes. They differ in the decision that the owner takes about each message, and this
// package knows nothing of that.
//
//	   committed │ everything here has arrived         │ read ahead,      │ not read yet
//	   (purged)  │ elsewhere, or waits for a commit    │ not yet arrived  │
//	─────────────┼─────────────────────────────────────┼──────────────────┼────▶ sequence
//	             first sequence                       cursor             read
//
// # Words
//
//	arrived   a message has arrived when the stream or the target it was sent to has acknowledged it
//	cursor    the sequence below which every message has arrived
//	commit    a purge up to the cursor
//	epoch     the life of one consumer
//	history   the contents of a stream since it was created; see Judge
//	gap       the sequences between the last message read and the next one that a consumer shows
//	look      a question to the stream's leader for the stream's state
//	tail      the place behind the last message of the stream
//
// # The cursor is the stream's own first sequence
//
// Every message below the cursor has arrived. A commit purges up to it, so the first sequence is the only durable
// state, and the next owner starts there. A message above the cursor that has arrived is sent again after a crash,
// under the same id.
//
// # Reading
//
// [Reader] runs its own pull loop on an ephemeral consumer, in memory and without acknowledgements. That costs one Raft
// operation for each message instead of four, and no memory in the server for messages in flight. nats.go's Consume,
// Messages and Fetch were rejected: a stored message with an empty body and the header "Status: 409" ends them for
// ever, on every instance, after every restart. Direct get was rejected: any replica may answer it, also one that lags.
// A stored message is known by its $JS.ACK reply subject, which names our consumer, and by nothing else.
//
// At the tail of a lane, a request that stays open makes the server send each message alone as it is stored, which
// costs the server and the reader a wake-up and a write for each. So if messages may wait (ReaderConfig.Collect), a
// request at the tail ends with the messages that are there ("no_wait"), and the next one follows after Collect. An
// idle lane has one open request, as any other: with "expires", the server keeps it until there is a message.
//
// # Nothing lies between
//
// A commit purges everything below the cursor, so a message that the reader skips is lost. Whatever a consumer shows,
// the reader trusts one number of its own: next. Every message below next that was not deleted was handed to the owner,
// or had arrived before this owner began. next rises in three places only. At each of them it is proven that no message
// is skipped:
//
//	the reader begins at the stream's    Whatever lies below was purged: the leader says so. A replica that lags, or a
//	first sequence                       deposed leader, would name a lower sequence.
//	the consumer shows sequence next     There is no sequence between.
//	the consumer shows a higher          Either each sequence of the gap was deleted when the epoch began: the leader
//	sequence (a gap)                     listed them. Or the leader, asked now, has no message in the gap, but does have
//	                                     the one that was shown. A deposed leader knows of fewer deletes than there are,
//	                                     never of more. If the leader has nothing at all from there on, that proves
//	                                     nothing, and the consumer is replaced.
//
// No part of this proof rests on the consumer, because its own numbering proves nothing. When the server that holds a
// consumer is restarted, nats-server creates the consumer again under the same name: it starts at its original start,
// and counts from one. If the messages there have been purged meanwhile, the number that continues our count belongs to
// a message further on. Acknowledged messages were lost that way: 50 to 74 of 2,000. So a consumer may be created
// again, reset or moved to another server, may answer late, and may lose messages on the wire. A message is accepted
// only if it is adjacent to the last one, or if the gap is proven to be empty.
//
// The consumer's numbers still serve as a hint. Three signs show immediately that a message was lost, or that the
// consumer was created again: a number that does not continue our count, a heartbeat with another count, and a
// heartbeat of a consumer that is already past messages that we have not read. In each case a new consumer starts at
// next.
//
// A replica that lags may show a message that the leader listed as deleted. It is not accepted: an earlier owner
// removed it, out of order, because it had arrived.
//
// # Epochs
//
// A consumer that starts behind the end of a stream is not refused. It waits, sends heartbeats, and never delivers the
// messages that are stored below its start. And a purge by the cursor of an earlier history destroys messages that were
// accepted in the present one (50 messages, in the experiment that found it). So each consumer begins with a look at
// the stream. If the stream has another history, the new [Epoch] says so, and the owner forgets its cursor. [Judge]
// tells histories apart. The answer of a deposed leader does not count.
//
// Two cases escape the reader. While it waits for its owner it reads nothing from the server, for hours in a long
// level. And a stream that is restored from a backup of nats-server before 2.15 reports the creation time of the
// original. So the owner looks at the last message it read before each purge. If that is another message now, the owner
// calls [Reader.Invalidate].
//
// # Tried and rejected
//
// To collect at the tail without a slack: at 1,000 messages a second half came 0.3 ms later, for 6 % less CPU.
//
// To take messages one by one where a request brings fewer than four of them: 2,375 and 2,325 µs a message at 100 a
// second with a slack of 1 and 5 ms, for 2,400 and 2,250 without.
//
// To ask for 2,000 messages at a time, and to take in 64 of them before looking at all else: 100,000 messages that are
// due at once came no sooner.
//
// To count the messages that are still to come for all requests together, by what the server says when a request ends.
// It does not always say so, and a lane stood still: see requests.
//
// # The price of watching an idle lane
//
// See [Watch].
package lane
