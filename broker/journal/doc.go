// Package journal records how messages ended. A broker writes a record for each message that was delivered or became a
// dead letter, into a stream of its own. An operator searches the stream.
//
//	lanes' loops ── Add ──▶ [queue, bounded] ── Run ──▶ one batch at a time ──▶ DELAY_JOURNAL ── Search ──▶ operators
//	                   └─ no room: dropped, reported by the next batch              └─ max_age, max_bytes
//
// # Invariants
//
//   - No delivery and no commit waits for the journal or depends on it. Add encodes one line, and drops the record if
//     there is no room.
//   - The journal reports its gaps. "Not in the journal" can be trusted if the report of a search has no gap.
//   - A batch counts only with the seal of a broker. The server publishes its answers where a client asks for them. So
//     a client can make the server store a message here.
//   - A search needs memory for one answer of the server, about 4 MiB, however many records there are. It keeps no
//     record that it has handed on.
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
// The fields of the head:
//
//	v     version of the encoding; a reader skips batches of newer versions
//	b, s  the broker's name, and a random token for each start of it
//	n     number of the batch, from 1 for each start; a start stores its batches in order
//	p     number of the last acknowledged batch before this one; 0 for none
//	k     number of records that follow; a, z: the times of the earliest and the latest, unix nanoseconds. A batch
//	      without records is a heartbeat
//	lost  records that were dropped since the batch before: their number (k), and their times (a, z)
//	end   the broker stopped cleanly: this start writes nothing more
//
// The fields of a record; empty and zero fields are left out:
//
//	i  Delay-Id
//	t  target
//	d  due, unix nanoseconds; none if the request was invalid
//	w  nanoseconds from due until the target had the message, or the dead letter was stored; without d, since 1970
//	l  lateness in nanoseconds, if it differs from w: a target's rate gave the message a later turn
//	r  deliveries that the target refused
//	c  code of the dead letter; none if the message was delivered
//	e  reason of the dead letter, or of the last refusal; at most 256 bytes
//	s  of a recurring timer: the generation of its first set; n: the number of the round
//
// All times are by the clocks of the leaders of lanes, as far as the broker knows them (see package leader).
// Fields may be added without a new version.
//
// # How a reader finds gaps
//
//	there was no room for records, or a batch was    the next batch has their number and times (lost)
//	dropped
//	batches were removed, or a server lost them      p is the number of a batch that was not read
//	a broker was killed                              it wrote no end, and does not answer. A running broker writes every
//	                                                 minute, so records of the minute after its last batch may be
//	                                                 missing: at most those of 0.15 s. If no broker wrote then, because
//	                                                 none could, the gap lasts as long as that
//	a broker runs, and cannot store its records      it answers since when it has unstored records (State)
//	no broker kept a journal                         no broker wrote for two and a half minutes, and no earlier one
//	                                                 continued after that
//	the stream was full, or is new                   its first message is younger than the time of the query
//	one of several brokers keeps none                the journal cannot show it later; package inspect asks the brokers
//	                                                 that run
//
// The reader asks the running brokers just before it reads (Config.States). So it knows all records up to a second
// before: a record may take that long from the delivery into the stream, and a broker that long to answer. If the
// brokers could not be asked, the last minute is unknown. After a minute without a batch the reader does not know
// whether a broker lives. After two and a half minutes it takes the broker for killed.
//
// One gap is longer than the reported minute: a broker is cut off from the journal, continues to deliver, and is killed
// before it has written again.
//
// A client can store a copy of a batch. Its number was read already, or its records are older than any record that is
// stored for the first time (maxBatchAge). A copy of an empty batch has neither sign. At worst it hides that no broker
// wrote.
//
// # Tried and rejected
//
//   - A message for each record: as many writes as deliveries, each with 100 bytes of overhead.
//   - A record for each refusal, too: a target that is away for an hour would push all other records out. The last
//     record has the number of refusals and the reason of the last. Waiting messages are found by where and retrying.
//   - A binary encoding: half the size, and unreadable with the NATS CLI. A record has some 90 bytes, and costs its
//     delivery 0.2 µs (BenchmarkRecord), at most a hundredth. A search among a million records takes a quarter of a
//     second, and reading them all takes two (BenchmarkSearch).
//   - A subject for each instance: each start of an instance would leave a subject in the server's memory.
//   - One queue for this package and for package trace. A queue of records here costs an allocation for each record,
//     since a record's strings belong to a message. This queue holds encoded lines, that one holds spans.
package journal
