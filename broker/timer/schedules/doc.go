// Package schedules answers clients that use the dialect of nats-server's own scheduling (ADR-51): requests with
// Nats-Schedule, on subjects that no stream listens on. So the clients' own options for schedules work as they are, and
// their targets may be in any stream.
//
//	message.Grounds   the subjects of schedules, and the targets that each of them allows
//	Judge             decides about a request as the server would: pure, and in the server's order
//	Service           receives a request, has its entry stored, and answers
//
// The stored entry is a timer: package entry writes and parses it (schedule.go). From then on it is armed, fired and
// delivered as any timer.
//
// # Invariants
//
//   - No answer comes before the entry is stored, and none at all if its result is unknown. An unanswered publish is
//     looked up, by its request ID. It is not sent twice, unless the second copy expects the last entry.
//   - A request with a condition (Nats-Expected-Last-Subject-Sequence, Nats-Msg-Id) is stored in place of the last
//     entry: its publish expects the entry that was read. Otherwise the last writer wins, as with the server.
//   - The answer is the server's, with its codes and words. test/schedules/README.md lists the differences.
//   - A client chooses the target by a header, so its permissions do not show whether it may. The setting does: a
//     ground has its targets. A ground represents the one stream that the server would ask, so a schedule can only be
//     ended from its own ground.
//   - To a schedule's client, an operator's change is the same as another client's: package store writes the entry. A
//     recurring schedule keeps its identity, the sequence of its first round. A schedule that fires once is another one
//     after a move: the sequence and the id of the request do not identify it any more.
//   - A schedule is refused if its target's stream would refuse its message, as far as the account's streams show.
//   - Our seal makes an entry valid. So of a client's Delay- headers, it contains only those that a client may use.
//   - Every queue is bounded. One instance works on all requests about one schedule, in their order.
//
// # Other senders
//
// NATS sends the answer to any client's request to any subject that the client names. So a tenant can put
// acknowledgements on the subject of a schedule and, with the right to read a stream of its own, messages with headers
// and bodies of its choice. Such an answer has no reply subject, or one below $JS.ACK. Hence a message is a request
// only if its reply subject is one for answers (service.Answerable). That also bounds where we may publish for a
// client: the broker has rights that the client lacks.
//
// The acknowledgement of the timers' stream is believed only under the token of its publish, and only from that stream.
//
// # Tried and rejected
//
// Nats-Scheduler and Nats-Schedule-Next on the delivered message, as from the server: every stream refuses them, or
// purges the subject that they name (TestSchedulerHeadersStayHome). A stream of ours that binds the subjects: with
// allow_msg_schedules the server would fire, too, and without it the server refuses the request before any broker
// receives it.
package schedules
