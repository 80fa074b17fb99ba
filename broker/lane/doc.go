// Package lane is one ordered stream, read from a cursor by one owner, and committed behind it. A delay level, the
// intake, and a retry delay are all lanes; what differs is what the owner decides about each message, which is none of
// this package's business.
//
//	   committed │ everything here has arrived elsewhere,     │ read ahead,      │ not read yet
//	   (purged)  │ or waits for a commit                      │ not yet arrived  │
//	─────────────┼────────────────────────────────────────────┼──────────────────┼─────────────▶ sequence
//	             first sequence                              cursor             read
//
// # The cursor is the stream's own first sequence
//
// Everything below the cursor was acknowledged by where it went. Committing purges up to it, so that the first sequence
// is the only durable state: a successor starts there. A message acknowledged above the cursor is repeated after a
// crash, under the same id.
//
// # Reading
//
// [Reader] runs its own pull loop on an ephemeral, in-memory, acknowledging-nothing consumer: one Raft operation per
// message instead of four, and no memory in the server for what is held. nats.go's Consume, Messages and Fetch are no
// alternative: a stored message with an empty body and a "Status: 409" header ends those for ever, on every instance,
// after every restart. Nor is direct get, which any lagging replica may answer. A stored message is known by its
// $JS.ACK reply subject, which names our consumer, and by nothing else.
//
// # Nothing lies between
//
// The cursor purges everything below it, so a message that the reader passes by is lost. Whatever a consumer shows, the
// reader knows one number of its own: next. Every undeleted message below next was handed over, or had arrived before
// this owner began. It rises in three places only, and nothing can lie in between at any of them:
//
//	begins at the stream's first sequence     what lies below was purged; the leader says so, and a replica or a leader of
//	                                          the past would name a lower one
//	a message with the sequence next          there is no sequence between
//	a message with a higher one (a gap)       each sequence between was deleted when the epoch began (the leader listed
//	                                          them), or the leader has no message from there up to this one (asked now). A
//	                                          leader of the past has fewer deletes than there are, never more; what it does
//	                                          not have at all proves nothing, and the consumer is replaced
//
// None of this rests on the consumer. Its own numbering proves nothing: when the server that holds it is restarted,
// nats-server makes the consumer anew under its name, from where it began, counting from one; and once the cursor has
// purged what lay there, the number that follows ours belongs to a message further on. (Acknowledged messages were lost
// that way: 50 to 74 of 2,000.) So the consumer may be made anew, reset, moved to another server, answer late or be
// lost in part on the wire: a message lies next to the last one, or is proven to, or is not taken.
//
// A consumer's numbers are a hint all the same. A number that is not the one after the last, a heartbeat that counts
// otherwise, or one of a consumer that is past what we have not read, says at once that something was lost or the
// consumer is another; a new one starts at next.
//
// What the leader listed as deleted is not taken when a lagging replica shows it: a predecessor removed it, out of
// order, because it had arrived.
//
// # Epochs
//
// A consumer that starts behind the end of a stream is not refused: it waits, with heartbeats, and never delivers what
// is stored below. A purge by a cursor of a former life destroys what was accepted in this one (50 messages, in the
// experiment that found it). So each consumer begins with a look at the stream, and when that is not the stream we
// knew, a new [Epoch] says so and the owner forgets its cursor. [Judge] tells histories apart; a deposed leader's
// answer is none.
//
// A reader that waits for its owner hears nothing of the server, for hours in a long level, and a stream that is
// restored from a backup of nats-server before 2.15 says that it was created when the one before was. So the owner
// looks at the last message it read before it purges, and tells the reader when that is another: [Reader.Invalidate].
//
// # Watching costs what the lane is worth
//
// See [Watch].
package lane
