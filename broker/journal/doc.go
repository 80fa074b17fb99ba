// Package journal keeps what became of messages: was it delivered, and when? A broker writes a record for each message
// that was delivered or became a dead letter, into a stream of its own. An operator searches it.
//
//	lanes' loops ── Add ──▶ [queue, bounded] ── Run ──▶ one batch at a time ──▶ DELAY_JOURNAL ── Search ──▶ operators
//	                   └─ no room: counted, and said by the next batch              └─ max_age, max_bytes
//
// # Invariants
//
//   - No delivery and no commit waits for the journal, and none depends on it. Add takes as long as writing one line.
//     What finds no room is dropped.
//   - What is missing is said. "Not in the journal" can be trusted where the report of a search has no hole.
//   - What no broker wrote is not believed: a batch counts with the seal of a broker only. The server puts its answers
//     where the asker says, so a client may have something stored here.
//   - A search needs memory for one answer of the server, about 4 MiB, however many records there are. What it finds it
//     hands on.
//
// # The encoding
//
// A message of the stream, on delaysys.journal, is a batch: lines of JSON. Its header Delay-Seal is the seal of subject
// and body (see message.Keys.Seal). The first line is the head, and one line for each record follows:
//
//	{"v":1,"b":"kitchen-ea25a8","s":"Q2ZD5XKAAF","n":7,"p":6,"k":2,"a":1795222624920000000,"z":1795222625920000000}
//	{"i":"DELAY_1s-29-1795222623918700000","t":"orders.a","d":1795222624918700000,"w":1300000}
//	{"i":"DELAY_5s-3-1795222618918700000","t":"orders.b","d":1795222623918700000,"w":2001300000,"r":1,"e":"it is full"}
//
// Of the head:
//
//	v     version of the encoding; a reader leaves alone what is newer than itself
//	b, s  the broker's name, and a word that tells its starts apart
//	n     number of the batch, from 1 for each start; each is stored behind the one before
//	p     number of the batch before that was acknowledged; 0 for none
//	k     records that follow; a, z: the time of the earliest and of the latest, unix nanoseconds. None: a mark
//	lost  records that were dropped since the batch before: how many (k), and of when (a, z)
//	end   the broker stopped cleanly: nothing of this start follows
//
// Of a record; what is empty or zero is left out:
//
//	i  Delay-Id
//	t  target
//	d  due, unix nanoseconds; none where the request was not understood
//	w  nanoseconds from due until the target had it, or the dead letter was stored; without d, since 1970
//	l  how late that was, where it is not w: a target's rate gave the message a later turn
//	r  deliveries that the target had refused
//	c  code of the dead letter that it became; none: it was delivered
//	e  why it is a dead letter, or why the target refused last, 256 bytes at most
//	s  of a timer that recurs: the generation of its first set; n: the number of the round
//
// All times are by the clocks of the leaders of lanes, as far as the broker knows them (see package leader).
// Names may be added without a new version.
//
// # How a reader knows what is missing
//
//	records found no room, or a batch was given up   the next batch says how many, and of when (lost)
//	batches were removed, or a server lost them      p is a batch that was not read
//	a broker was killed                              it wrote no end, and does not answer. Had it lived, it would have
//	                                                 written within a minute: so its records of that minute may be
//	                                                 missing, at most 0.15 s of them. If nobody wrote then, since nobody
//	                                                 could, the hole is as long as that
//	a broker runs, and cannot store its records      it answers since when it has some that are not stored (State)
//	no broker kept a journal                         nobody wrote for two and a half minutes, and nobody who had written
//	                                                 before went on then
//	the stream was full, or is new                   its first message is younger than the time asked for
//	one of several brokers keeps none                not known afterwards; of those that run, package inspect knows it
//
// The reader asks the brokers that run just before it reads (Config.States). So it knows all records of up to a second
// before: that is how long a record may take from the delivery into the stream, and a broker to answer. If the brokers
// could not be asked, the last minute is not known. After a minute without a word it is not known whether a broker
// lives, and after two and a half the reader takes it for killed.
//
// Where one of several brokers is cut off from the journal, goes on delivering, and is killed before it has written
// again, the hole is longer than the minute that a reader is told.
//
// A batch that somebody has stored once more has a number that was read already, or records that are older than any can
// be that is stored for the first time (keepFor). An empty one cannot be told so: at worst it hides that nobody wrote.
//
// # Rejected
//
//   - A message for each record: as many writes as there are deliveries, each with 100 bytes around it.
//   - A record for each refusal, too: a target that is away for an hour would push everything else out. The last record
//     says how often the message was refused, and why the last time. What waits is found by where and retrying.
//   - A binary encoding: half the size, and nobody could read it with the NATS CLI. A record has some 90 bytes, and
//     costs its delivery 0.2 µs (BenchmarkRecord), a hundredth or less. A million are searched for one of them in a
//     quarter of a second, and all read in two (BenchmarkSearch).
//   - A subject for each instance: each start of one would leave a subject in the server's memory.
package journal
