// Package message implements the broker's contract with its clients: the subjects and headers of a request, the headers
// of a delivered message, and an explanation for each bad request. It has no NATS connection. Package entry parses the
// requests for named timers, and this package parses all other requests.
//
// # Subjects
//
// One rule makes permissions sound: in a request, exactly one token stands between the first token and the target. So a
// client that may publish "delay.*.orders.>" reaches only targets below "orders".
//
//	delay.<level>.<target…>             after the level's delay
//	delay.<n><unit>.<target…>           after a plain duration that is not a level: 7m, 45m, 3d
//	delayin.<duration>.<target…>        after any duration: 1h30m, 1500ms
//	delayat.<time>.<target…>            at a time: RFC 3339 without fraction, unix seconds, unix milliseconds
//	delaytimer.<key>.<target…>          a named timer: see package entry
//	delaysys.hop.<level>.<target…>      between lanes; only the broker may publish below delaysys
//	delaysys.retry.<level>.<target…>    a refused message that waits for its next attempt
//	delaysys.paused.<pause>.<target…>   a due message that waits for the end of a pause
//	delaysys.journal                    the outcomes of messages: see package journal
//	delaydead.<code>[.<target…>]        dead letters
//
// [Names] makes all subjects and the names of the streams from one prefix.
//
// # Headers
//
// Names of request headers are case-insensitive. A duplicate request header is a bad request. The broker believes state
// headers (Delay-Id, Delay-Due, …) only in a message that a broker wrote. A seal proves that: see [Keys]. The subject
// proves nothing, because nats-server checks no permission before it publishes an answer on the subject that a client
// has chosen for the answer.
//
// The header for the next lane, or for the target, has state headers and the client's own headers. Reserved names are
// dropped after nats.go has parsed the headers, in any case and with any padding. They cannot be dropped in the raw
// header block, because nats-server ends a header line only at CRLF, and nats.go also at a bare LF. So after nats.go
// has parsed the headers and encoded them again, a part of a harmless value could be the header "Nats-Rollup: all".
// This header would delete the contents of the target's stream.
//
// # Problems
//
// A stream cannot refuse a bad request, so the request becomes a dead letter with a [Problem]. A problem has a code for
// programs, and a sentence that tells people what to change.
package message
