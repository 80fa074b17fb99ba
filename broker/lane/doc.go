// Package lane reads one ordered stream from a cursor, for one owner. Levels, the intake, retry lanes, the lanes of
// pauses and the timers are lanes. The owner decides what happens to each message; this package does not.
//
//	   committed │ all messages have arrived,          │ read, but not    │ not read yet
//	   (purged)  │ and wait for a commit               │ all have arrived │
//	─────────────┼─────────────────────────────────────┼──────────────────┼────▶ sequence
//	             first sequence                       cursor             next
//
// # Terms
//
//	arrived   acknowledged by the stream or the target to which the message was sent
//	cursor    the sequence below which every message has arrived
//	commit    a purge up to the cursor
//	epoch     the life of one consumer
//	history   the contents of a stream since it was created; see Judge
//	gap       the sequences between the last message read and the next message that a consumer shows
//	sample    the state of a stream as its leader reports it
//	tail      the position after the last message of the stream
//
// # The cursor is the stream's own first sequence
//
// Every message below the cursor has arrived. A commit purges the stream up to the cursor. So the stream's first
// sequence is the only durable state, and the next active instance starts at the first sequence. (Only the timers' lane
// stores its cursor, because timers stay in the stream: see ReaderConfig.Sparse.) After a crash, the next active
// instance sends each message that is still in the lane, even if it has arrived, under the same message id.
//
// # Reading
//
// [Reader] runs its own pull loop on an ephemeral consumer, in memory and without acknowledgements. A message then
// costs one Raft operation; in a work queue with acknowledgements, it would cost four. The consumer takes no memory in
// the server for messages in flight. nats.go's Consume, Messages and Fetch were rejected: a stored message with an
// empty body and the header "Status: 409" ends each of them, on every instance, and again after every restart. Direct
// get was rejected: any replica may answer a direct get, even a replica that lags. The reader recognizes a stored
// message by its subject and its $JS.ACK reply subject, not by its headers: see parseStored.
//
// At the tail of a lane, an open request makes the server send each new message immediately and alone. Each message
// then costs the server and the reader a wake-up and a write. So if messages may wait (ReaderConfig.BatchWindow), a
// request at the tail returns only the messages that are already stored ("no_wait"), and the reader sends the next
// request after BatchWindow. An idle lane still has one open request, which the server keeps until a message is stored
// ("expires").
//
// # The reader skips no message
//
// A commit purges all messages below the cursor, so a message that the reader skips is lost. The reader does not trust
// consumer sequences, the numbers that a consumer gives to its messages. It trusts only its own sequence next: every
// message below next was deleted, or handed to the owner, or had arrived before this owner began. At first, next is the
// previous owner's cursor (ReaderConfig.From). The reader raises next only in the three cases below. In each case there
// is a proof that no message is skipped:
//
//	the reader begins at the stream's    The leader reports that all messages below the first sequence were purged. A
//	first sequence                       replica that lags, or a deposed leader, reports a lower first sequence, which
//	                                     skips no message.
//	the consumer shows sequence next     There is no sequence between the last message read and this message.
//	the consumer shows a higher          For each sequence of the gap, either the leader listed the sequence as deleted
//	sequence (a gap)                     when the epoch began, or the leader now has no message with this sequence, but
//	                                     has a message after the gap. A deposed leader may miss deletes, but it never
//	                                     reports a delete that did not happen. If the leader has no message at or after
//	                                     the start of the gap, its answer proves nothing, and the reader replaces the
//	                                     consumer.
//
// The proof does not use consumer sequences. When the server that holds a consumer is restarted, nats-server creates
// the consumer again under the same name. The new consumer starts at the original start sequence, and counts its
// messages from one. If the messages at the start were purged meanwhile, the count begins with a later message, so a
// wrong message may have the consumer sequence that the reader expects. An earlier version trusted consumer sequences,
// and lost 50 to 74 of 2,000 acknowledged messages. With the proof, no message is skipped if the server creates, resets
// or moves a consumer, if the consumer answers late, or if messages are lost on the wire.
//
// The reader still uses consumer sequences to detect early that a message was lost, or that the consumer was created
// again. There are three signs: a message with an unexpected consumer sequence, a heartbeat with an unexpected consumer
// sequence, and a heartbeat with a stream position after sequences that the reader has not read. At the third sign, the
// reader asks the leader whether such a sequence has a message, and ignores the sign if none has. Otherwise, the reader
// creates a consumer that starts at the last message read.
//
// A replica that lags may show a message that the leader listed as deleted. The reader does not accept the message: it
// had arrived, and an owner deleted it out of order.
//
// # Epochs
//
// If a stream is created again, the position from the earlier stream is dangerous in two ways. The server accepts a
// consumer with a start beyond the end of the stream; such a consumer sends heartbeats, and never delivers the messages
// that are then stored below its start. And a purge by the cursor of an earlier history deletes messages of the current
// history (50 messages in one experiment). So the reader takes a sample of the stream before it creates a consumer. If
// the stream has another history, the new [Epoch] reports that, and the owner resets its cursor. [Judge] distinguishes
// histories, even if a deposed leader answers.
//
// In two cases the reader does not detect that the stream has another history. First, while the reader waits for its
// owner, it reads nothing from the server; in a long level this lasts for hours. Second, a stream that is restored from
// a backup of nats-server before 2.15 reports the creation time of the original stream. So before each purge, the owner
// asks the leader for the last message that the reader handed over. If the leader's message has another timestamp, the
// owner calls [Reader.Invalidate].
//
// # Tried and rejected
//
//   - To use a batch window even when messages may not wait. At 1,000 messages a second, the median delivery was 0.3 ms
//     later, and the CPU time was 6 % less.
//   - To receive messages one by one while requests return fewer than four messages. At 100 messages a second and with
//     a batch window of 1 ms, the CPU time of a message fell from 2,400 to 2,375 µs; with 5 ms, it rose from 2,250 to
//     2,325 µs.
//   - To request 2,000 messages at a time, and to let the owner handle 64 of them before it handles other events.
//     100,000 messages with one due time were not delivered earlier.
//   - To treat a request as open until the server reports its end. When a report was missing, the lane stopped: see the
//     type requests.
package lane
