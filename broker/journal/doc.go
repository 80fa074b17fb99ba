// Package journal records how messages ended. For each message that was delivered or became a dead letter, a broker
// writes a record into the journal's stream. An operator searches this stream.
//
//	lanes' loops ── Add ──▶ [queue, bounded] ── Run ──▶ one batch at a time ──▶ DELAY_JOURNAL ── Search ──▶ operators
//	                   └─ no room: dropped, reported by the next batch              └─ max_age, max_bytes
//
// # Invariants
//
//   - No delivery, and no removal of a delivered message, waits for the journal or depends on it. Add encodes one line,
//     and drops the record if there is no room.
//   - A search reports the holes of the journal: the intervals in which records are missing, or may be missing. If it
//     reports none, each message that ended in the interval of the search has a record, if all instances keep a
//     journal. The section about holes ends with the exceptions.
//   - With a secret, a batch counts only if it has the seal of a broker. A client chooses the reply subject of its
//     requests, and so can make the server store an answer in this stream.
//   - A search needs memory for one answer of the server, about 4 MiB, for any number of records. It passes each record
//     to its caller, and does not keep it.
//
// # The encoding
//
// A message of the stream, on delaysys.journal, is a batch of lines of JSON. Its header Delay-Seal is the seal of
// subject and body (see message.Keys.Seal). The first line is the head. Each further line is a record:
//
//	{"v":1,"b":"kitchen-ea25a8","s":"Q2ZD5XKAAF","n":7,"p":6,"k":2,"a":1795222624920000000,"z":1795222625920000000}
//	{"i":"DELAY_1s-29-1795222623918700000","t":"orders.a","d":1795222624918700000,"w":1300000}
//	{"i":"DELAY_5s-3-1795222618918700000","t":"orders.b","d":1795222623918700000,"w":2001300000,"r":1,"e":"it is full"}
//
// The fields of the head:
//
//	v     version of the encoding; a reader skips batches of newer versions
//	b, s  the name of the instance, and a random token for each of its starts
//	n     number of the batch, from 1 for each start; the batches of a start are stored in this order
//	p     number of the last acknowledged batch before this one; 0 for none
//	k     number of records that follow; a batch without records is a heartbeat
//	a, z  times of the earliest and of the latest record, unix nanoseconds
//	lost  dropped records that no earlier acknowledged batch reports: their number (k), and their times (a, z)
//	end   true for the last batch of this start, after a clean stop
//
// The fields of a record; only i and w are always present:
//
//	i  Delay-Id
//	t  target
//	d  due time, unix nanoseconds; none if the broker could not parse the time in the request
//	w  nanoseconds from d, or without d from 1970, until the delivery or until the dead letter was stored
//	l  lateness in nanoseconds, without waits for a rate or a pause; left out if it is equal to w
//	r  number of deliveries that the target refused
//	c  code of the dead letter; none if the message was delivered
//	e  reason of the dead letter, or of the last refusal; at most 256 bytes
//	s  for a recurring timer, the generation of its first set; n: the number of the round
//
// All times are by the clocks of the leaders of lanes, as far as the broker knows them (see package leader). A new
// field does not change the version.
//
// # How a reader finds holes
//
//	a broker dropped records for lack of room, or    the next batch has their number and times (lost)
//	dropped a batch
//	batches were removed, or a server lost them      p is the number of a batch that was not read
//	a broker was killed                              it wrote no batch with end, and does not answer. A running broker
//	                                                 writes at least once a minute, so the hole is the minute after its
//	                                                 last batch. In this minute, the records of at most a second are
//	                                                 missing, if the stream worked. If no broker writes for more than
//	                                                 the next minute, the hole lasts until a broker writes
//	a broker runs, and cannot store its records      its answer has the time of its earliest unstored record (State)
//	no broker kept a journal                         no broker wrote for two and a half minutes, and the next batch, if
//	                                                 there is one, is the first of its start that the search reads
//	old batches were removed, or the stream is new   its first message is newer than the beginning of the query
//	one of several brokers keeps no journal          the journal does not show it; package inspect asks the running
//	                                                 brokers
//
// The reader gets the answers of the running brokers just before it reads (Config.States). So a search knows the holes
// up to one second before it: a record reaches the stream within a second, or counts as unstored.
// Without these answers, the reader sees no hole in the last minute. If a broker has written nothing for a minute, the
// reader reports that the records after its last batch are unknown. After two and a half minutes, the reader concludes
// that the broker was killed.
//
// A hole may be longer than the reported minute if a broker loses its connection to the journal, continues to deliver,
// and is killed before it writes again.
//
// A client can store a copy of a batch. The reader recognizes the copy if it has read this batch or a later batch of
// the same start, or if the records are so old that a broker would have dropped the batch (maxRecordAge). It recognizes
// no other copy. An unrecognized copy can hide that no broker wrote, or make the reader report a hole that is none.
//
// # Tried and rejected
//
//   - A message for each record. Each delivery would cost a write, with 100 bytes of overhead.
//   - A record for each refusal: the refusals of a target that is unavailable for an hour would push all other records
//     out. The record of the message has the number of refusals, and the reason of the last refusal.
//   - A binary encoding. It would have half the size, and be unreadable with the NATS CLI. A record has some 90 bytes,
//     and adds 0.2 µs to its delivery (BenchmarkRecord), at most one per cent of the time of the delivery. A search
//     among a million records takes a quarter of a second, and a read of a million records takes two seconds
//     (BenchmarkSearch).
//   - A subject for each instance. An instance may have a new name after each start, and the server would keep the
//     subject of each name in memory.
//   - One queue for this package and for package trace. A queue of records would cost an allocation for each record,
//     because the strings of a record are parts of a message and would have to be copied. The queue of this package
//     holds encoded lines, and the queue of package trace holds spans.
package journal
