// Package message is the broker's contract with its clients: how a delay is asked for, what is passed on, and what is
// refused with which words. It is pure: no NATS connection, no clock, no state. Everything that a stranger can write
// (subjects, headers) is read here and nowhere else.
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
//	delaydead.<code>[.<target…>]        dead letters
//
// All of them, and the stream names, are made by [Names] from one prefix.
//
// # Headers
//
// Request headers are read in any case and believed once: a header given twice is a bad request. State headers
// (Delay-Id, Delay-Due, …) are believed only on subjects below delaysys and with a seal of ours, see [Keys]:
// nats-server vouches for who publishes on a subject, and not for what answers are put there. What is passed on to the
// next lane or to the target is built anew from the user's own headers; reserved names are dropped after parsing,
// whatever their case or padding. Dropping before parsing would not do: nats-server ends a header line at CRLF only,
// nats.go also at a bare LF, so what the first stream stored as part of a harmless value becomes "Nats-Rollup: all"
// when nats.go encodes it again, and would wipe the target's stream.
//
// # Problems
//
// A stream cannot refuse a bad request, so it becomes a dead letter: a [Problem] is its code, for programs, and its
// sentence, for people, which says what to change.
package message
