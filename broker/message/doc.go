// Package message is the broker's contract with its clients: the subjects and headers of a request, the headers of a
// delivered message, and the sentence for each refusal. It has no NATS connection and no state. Package entry parses
// the requests for named timers, and this package parses all other requests.
//
// # Subjects
//
// One rule makes permissions sound: exactly one token stands between a root and the target. A client that may publish
// "delay.*.orders.>" therefore reaches targets below "orders" and nothing else, whichever level it names.
//
//	delay.<level>.<target…>             after the level's delay
//	delay.<n><unit>.<target…>           a plain duration that is no level: 15m, 45s, 1d
//	delayin.<duration>.<target…>        any duration: 1h30m, 1500ms
//	delayat.<time>.<target…>            RFC 3339 without fraction, unix seconds, unix milliseconds
//	delaysys.hop.<level>.<target…>      between lanes; only the broker may publish below delaysys
//	delaysys.retry.<level>.<target…>    a refused delivery that waits for its next attempt
//	delaysys.journal                    how messages ended: see package journal
//	delaydead.<code>[.<target…>]        dead letters
//
// [Names] makes all of them, and the stream names, from one prefix.
//
// # Headers
//
// Names of request headers are case-insensitive. A duplicate header is a bad request. State headers (Delay-Id,
// Delay-Due, …) are believed only on subjects below delaysys and with our seal, see [Keys]: nats-server checks the
// right to publish on a subject, but it publishes its own answers on any subject without a check.
//
// The headers for the next lane or the target are built from the user's own headers. Reserved names are dropped after
// the headers have been parsed, whatever their case or padding. They cannot be dropped in the raw header block, because
// nats-server ends a header line only at CRLF, but nats.go also at a bare LF. So a part of a harmless value in the
// first stream could become the header "Nats-Rollup: all" when nats.go encodes it again, and delete the contents of the
// target's stream.
//
// # Problems
//
// A stream cannot refuse a bad request, so the request becomes a dead letter with a [Problem]. A problem has a code for
// programs, and a sentence for people that says what to change.
package message
