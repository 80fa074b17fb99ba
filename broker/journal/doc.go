// Package journal records how messages ended. For each message that was delivered or became a dead letter, a broker
// writes a record into the journal's stream. An operator searches this stream.
//
//	lanes' loops ── Add ──▶ [package batch] ── Run ──▶ one batch at a time ──▶ DELAY_JOURNAL ── Search ──▶ operators
//	                   └─ no room: dropped, reported by the next batch            └─ max_age, max_bytes
//
// # Invariants
//
//   - No delivery, and no removal of a delivered message, waits for the journal or depends on it. Add encodes one line,
//     and drops the record if there is no room.
//   - A search reports the number of records that were dropped, and whether the journal begins after the beginning of
//     the search. If it reports neither, each message that ended in the interval of the search has a record, with one
//     exception: a broker that is killed leaves no record of its last deliveries, up to a second of them.
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
//	{"b":"kitchen-ea25a8","s":"Q2ZD5XKAAF","n":7,"k":2,"a":1795222624920000000,"z":1795222625920000000}
//	{"i":"DELAY_1s-29-1795222623918700000","t":"orders.a","d":1795222624918700000,"w":1300000}
//	{"i":"DELAY_5s-3-1795222618918700000","t":"orders.b","d":1795222623918700000,"w":2001300000,"r":1,"e":"it is full"}
//
// The fields of the head:
//
//	b, s  the name of the instance, and a random token for each of its starts
//	n     number of the batch, from 1 for each start; the batches of a start are stored in this order
//	k     number of records that follow; the first batch of a start has none
//	a, z  times of the earliest and of the latest record, unix nanoseconds
//	lost  number of dropped records that no earlier batch reports
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
// All times are by the clocks of the leaders of lanes, as far as the broker knows them (see package leader).
//
// # What a search reports as missing
//
// A broker drops records that find no room in the queue, and batches that the stream has not stored for five minutes.
// The next batch that the stream stores has their number. Until then, the running broker reports it in its answer to
// operators (Writer.Missing), with the records that have waited for longer than MaxStoreDelay. If the broker ends
// before that, only its log and its metrics have the number.
//
// A client can store a copy of a batch. The reader recognizes the copy if it has read this batch or a later batch of
// the same start, or if the records are so old that a broker would have dropped the batch (maxRecordAge).
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
//   - Intervals of missing records for each instance, found by numbers of batches, heartbeats, and marks of clean
//     stops. They took a quarter of this package. An operator asks whether one message was delivered, and the number of
//     missing records answers as much.
package journal
