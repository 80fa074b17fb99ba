// Package schedules answers clients that use nats-server's own headers for schedules (ADR-51): requests with
// Nats-Schedule, on subjects that no stream listens on. So such clients work unchanged, and their targets may be in any
// stream.
//
//	message.ScheduleRules  are patterns of schedule subjects, each with its allowed targets
//	Judge                  decides about a request as the server would, with the server's order of checks; it is pure
//	Service                receives requests, and answers them
//	Store                  stores the entries of schedules
//
// A schedule is stored as an entry of a timer. Package entry writes and parses that entry (schedule.go).
//
// # Invariants
//
//   - A client gets an answer only when it is certain that the entry is stored, or never will be. After a publish
//     without an answer, the broker looks for the entry, by a token that identifies the request. If no entry has the
//     token, the broker repeats the publish only for a conditional request.
//   - The publish for a conditional request (Nats-Expected-Last-Subject-Sequence, Nats-Msg-Id) is refused if the last
//     entry of the subject is not the one that the broker has read. For other requests the last writer wins, as with
//     the server.
//   - Answers have the server's codes and texts. test/schedules/README.md lists the differences.
//   - A client chooses the target by a header, so the server cannot check the client's permission for the target.
//     Instead, each rule lists the allowed targets. A rule corresponds to one stream of the server. So a request on
//     one subject can end the schedule of another subject only if one rule matches both subjects.
//   - To a schedule's client, a change by an operator looks like a change by another client. A client knows a recurring
//     schedule by the stream sequence of its first round, even after an operator has moved a round. If an operator
//     moves a schedule that fires once, the client's sequence and message id identify no schedule any more.
//   - A schedule with a TTL or a rollup is refused if the stream of its target does not allow TTLs or rollups.
//   - Every queue is bounded. An instance carries out a tenant's requests about one schedule in their order of arrival.
//     A slow request delays no request about another schedule, unless its tenant has slow requests about many: see
//     package service for the turns of tenants. A request that has waited for half of its timeout is refused.
//   - A tenant can make the server publish answers on the subject of a schedule. If the answers come from the tenant's
//     own stream, the tenant chooses their headers and bodies. Such answers have no reply subject, or one below
//     $JS.ACK. So service.Listener passes on only messages whose reply subject begins with _INBOX or another allowed
//     prefix.
//
// # Tried and rejected
//
// Nats-Scheduler and Nats-Schedule-Next on the delivered message, as the server sets them. Every stream refuses such a
// message, or purges the subject in the header (TestSchedulerHeadersAreRefused).
//
// A stream that listens on the subjects of schedules. With allow_msg_schedules, the server would fire, too. Without
// that option, the server refuses the request before a broker receives it.
package schedules
