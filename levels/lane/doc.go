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
// $JS.ACK reply subject, which no client can forge on our inbox, and by nothing else.
//
// The consumer's sequence rises by one per message. A jump, or a heartbeat that is ahead of us, means that a message
// was lost on the wire: a new consumer starts there. A jump in the stream's sequence alone is a delete.
//
// # Epochs
//
// A consumer that starts behind the end of a stream is not refused: it waits, with heartbeats, and never delivers what
// is stored below. A purge by a cursor of a former life destroys what was accepted in this one (50 messages, in the
// experiment that found it). So each consumer begins with a look at the stream, and when that is not the stream we
// knew, a new [Epoch] says so and the owner forgets its cursor.
//
// A reader that waits for its owner hears nothing of the server, for hours in a long level, and a stream that is restored
// from a backup of nats-server before 2.15 says that it was created when the one before was. So the owner looks at the
// last message it read before it purges, and tells the reader when that is another: [Reader.Deny].
//
// # Watching costs what the lane is worth
//
// See [Watch].
package lane
