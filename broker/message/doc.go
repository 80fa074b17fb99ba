// Package message is the broker's contract with its clients: the subjects and headers that ask for a delay, the headers
// that are passed on, and the sentence of each refusal. It is pure: no NATS connection, no clock, no state. This
// package parses all subjects and headers that a client can write, except those of named timers: see package entry.
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
// All of them, and the stream names, are made by [Names] from one prefix.
//
// # Headers
//
// Request headers are read in upper or lower case. A duplicate header is a bad request. State headers (Delay-Id,
// Delay-Due, …) are believed only on subjects below delaysys and with a seal of ours, see [Keys]: nats-server checks
// the right to publish on a subject, but delivers answers there without a check. The headers for the next lane or the
// target are built from the user's own headers. Reserved names are dropped after parsing, whatever their case or
// padding. To drop them before parsing was rejected. nats-server ends a header line only at CRLF, but nats.go also at a
// bare LF. So a part of a harmless value in the first stream could become the header "Nats-Rollup: all" when nats.go
// encodes it again, and delete the contents of the target's stream.
//
// # Problems
//
// A stream cannot refuse a bad request, so the request becomes a dead letter with a [Problem]: a code for programs, and
// a sentence for people that says what to change.
package message
