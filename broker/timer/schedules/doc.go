// Package schedules answers those who speak the dialect of nats-server's own scheduling (ADR-51): requests with
// Nats-Schedule, on subjects that no stream listens on. So the clients' own options for schedules work as they are, and
// their targets may be in any stream.
//
//	message.Grounds   where schedules are asked for, and which targets they may have there
//	Judge             decides about a request as the server would: pure, and in the server's order
//	Service           receives, has the entry stored, and answers
//
// What is stored is a timer: package message (schedule.go) writes and reads the entry, and from then on it is armed,
// fired and delivered as any timer.
//
// # Invariants
//
//   - No answer comes before the entry is stored, and none at all where nothing can tell. A publish that was not
//     answered is looked up, by a word of its own. It is not sent twice, unless the second copy expects what stands
//     there.
//   - What depends on what stands there (Nats-Expected-Last-Subject-Sequence, Nats-Msg-Id) is stored in its place: the
//     publish expects what was looked at. Otherwise the last writer wins, as with the server.
//   - The answer is the server's, with its codes and words. Where it differs, test/schedules/README.md says so.
//   - Who sends a request chooses the target by a header, so his permissions do not tell whether he may. The setting
//     does: a ground has its targets. It stands for the one stream that the server would ask for, so a schedule is
//     ended from its own ground, too.
//   - What an operator does to a schedule is to its client what another client does: package service writes the entry.
//     What repeats stays the same schedule, known by the sequence of its first round. What fires once is another after
//     a move: the sequence and the id of the request do not stand for it.
//   - A schedule whose message its target's stream would refuse is refused, as far as the account's streams tell.
//   - Our seal makes an entry true. So nothing of a client's Delay- headers gets into it but what is a client's to say.
//   - Every queue is bounded. Requests about one schedule are worked on in their order, by one instance.
//
// # Who else could have sent it
//
// NATS puts the answer to anybody's question on any subject that he names. So a tenant has acknowledgements, and with
// the right to read a stream of his own, messages with headers and bodies of his choice, put on the subject of a
// schedule. Such an answer has no reply subject, or one below $JS.ACK. Hence a request is only what wants its answer
// where answers go (service.Answerable). That is also where we may publish for him: the broker's rights are not his.
//
// The acknowledgement of the timers' stream is believed under the token of its publish, and only of that stream.
//
// # Tried and rejected
//
// Nats-Scheduler and Nats-Schedule-Next on what is delivered, as from the server: every stream refuses them, or purges
// what they name (TestSchedulerHeadersStayHome). A stream of ours that binds the subjects: with allow_msg_schedules the
// server would fire, too, and without it refuses the request before anybody sees it.
package schedules
