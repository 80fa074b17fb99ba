// Package deliver publishes messages to their targets, and determines whether they arrived. It bounds the outstanding
// messages of each group of targets.
//
// # The problem
//
// A target is any subject. A stream may listen on the subject, or a service, or core subscribers, or nobody. The
// subject does not show which of them listens, and the listeners may change at any time. Core subscribers need not
// answer. Every receiver of a message knows the message's reply subject, and may publish anything to that subject. And
// a target that is slow, silent or full must not delay the other targets.
//
// # Terms
//
//	outstanding  of a message: it has room in a group, and no result yet
//	group        a set of targets with one share of the window
//	window       the maximum numbers of messages and bytes that may be outstanding, for all targets together
//	share        the part of the window that the outstanding messages of a group may take
//	pass         to take room in a group for a message, until the message has a result
//	wait         to be in the queue of a group, without room
//	give back    to end a delivery without sending the message; the caller of Deliver repeats the delivery later
//	turn         a time at which a rate permits one message; see turns.go
//	halt         to stop sending to some targets, as in a pause; see Deliverer.Halt
//	pressure     the state of a group that recently had no room for a message; see pressure.go
//
// # The parts
//
//	Deliverer   deliver.go, send.go        joins the parts, publishes, and acts on verdicts
//	evidence    gather.go, evidence.go     the facts about an answer or a silence, and the verdict on them
//	lookup      lookup.go, snapshot.go,    which streams of the account listen on a subject
//	            filters.go, subjects.go
//	targets     targets.go, rates.go,      the state of each subject, its rate, and the turns at that rate
//	            turns.go
//	counts      counts.go                  the outcomes of deliveries, by target or pattern
//	groups      groups.go, group.go,       the room of each group, its waiting messages, and the messages to give back
//	            pressure.go
//
// # Evidence
//
// Each delivery is published with a reply subject. Mode auto decides by the answer, or by the silence:
//
//	a stream acknowledges                       delivered
//	a stream refuses, or the server sends 503   refused: counts as an attempt
//	the account or the server is full           no room: repeated later, and does not count as an attempt
//	silence, and no stream would acknowledge    delivered to core subscribers, which do not answer
//	silence, and a stream might acknowledge     unknown: repeated under the same id
//	a stream answers that it is busy            unknown: repeated under the same id
//
// In mode stream, only an acknowledgement counts as a delivery. In mode core, silence counts as a delivery, and so does
// every answer except a 503 (nobody listens). In mode request, a service's reply without an error counts as a delivery,
// and a missing reply counts as a refusal. In modes auto and stream, package engine repeats a delivery whose result is
// unknown under the same id, and counts three silences in a row as one refusal.
//
// An answer without a sequence is no acknowledgement. In modes auto and stream, if a stream is known to listen on the
// target, the acknowledgement must name that stream, because a subscriber of the target may publish anything to the
// reply subject. In mode request, a service may reply with its own JSON that has a field "stream". So a reply that
// looks like an acknowledgement counts as the service's reply if the streams of the account are known, and the stream
// that the reply names does not listen on the target.
//
// In mode auto, silence counts as a delivery only on three conditions: the server has confirmed that it took the
// message, at least 50 ms have passed since then, and the account's streams are known. When a target is silent, the
// deliverer requests a list of all streams, unless the last list is less than 2.5 s old. The deliverer matches the
// target with the subjects of the listed streams. While the last list is older than 5 s, for example because the
// request fails or is forbidden, no silence counts as a delivery. For a stream without a leader, the list contains only
// the name, and the deliverer uses the last known subjects of that stream. If the deliverer knows no subjects of that
// stream, it asks the cluster about each silent subject on which no other stream is known to listen.
//
// The list lacks streams of another account, of another JetStream domain, or behind a subject mapping of the account.
// If such a stream has acknowledged a message within the last minute, silence does not count as a delivery for the
// subject of that message, or for subjects with the same first two tokens. At other times, silence counts as a delivery
// to core subscribers, although the stream may only be slow. If core subscribers and such a stream listen on one
// target, the core subscribers get duplicates of the messages that the stream does not acknowledge within 5 s. To
// prevent wrong outcomes and duplicates, configure the modes of these targets, as pattern=mode:
// DELAY_DELIVER="shop.eu.>=stream,shop.ui.>=core".
//
// If NATS does not permit the broker to publish to a subject, the target seems silent. The server reports the refusal
// to the error handler of the connection: see NoteError.
//
// # Lateness
//
// A delivered message has one time of delivery, Result.Time. Package engine measures the lateness of the message up to
// that time, for the journal, the metrics, the page and the traces.
//
//	a stream acknowledges, or a service replies  the time at which the broker received the answer
//	silence counts as the delivery               the time at which the server confirmed that it took the message, not
//	                                             the end of the wait for an answer
//
// The server confirms by answering a flush. There is at most one flush in 5 ms, so under load this time may be some 5
// ms after a core subscriber got the message.
//
// # Fairness
//
// A message that is not sent or not answered stays in the memory of its lane, and a lane whose memory is full stops for
// all targets. So the outstanding messages for one target are bounded, in number and in bytes. A bound for each subject
// would be useless if subjects contain ids. Therefore targets are grouped. If the last list shows a stream on a target,
// the targets of that stream are a group; otherwise the targets with the same first two tokens are a group. A group
// without outstanding messages has room for one message of any size. Beyond that, a group may take at most an eighth of
// the part of the window that no other group uses. The groups with the same first token, together, may take at most a
// quarter of the part that no group outside them uses. So a group that answers has room even if many other groups are
// silent, unless the silent groups fill the window with one message each.
//
// While a group is under pressure, the deliverer judges the group four times a second. A group that was fast (see
// below) since the last judgement gets the large share: half of the part of the window that no other group uses. The
// group keeps the large share as long as it answers and has room. A group that falls silent has the ordinary share, an
// eighth, from the next judgement on. Until the outstanding messages of that group time out, the other groups share the
// rest of the window.
//
// If a group has no room for a message, the message waits, or is given back. A group is fast if it takes at least 2,000
// messages a second, or at least 8 MiB a second. If a quarter of the window's bytes is more than 8 MiB, that quarter
// replaces the 8 MiB. Any number of messages may wait for a fast group, so one healthy target can use the whole
// throughput of the broker. If a group was judged and is not fast, the deliverer gives back the messages that the group
// would not take within three seconds. It also gives messages back if otherwise the waiting and the outstanding
// messages of the group would be more than a quarter of the window. The outcome of these messages is Stalled, with the
// time at which the group should have room. These messages come again from a retry lane. A group that does not answer
// in its first quarter of a second under pressure counts as silent. So does a group whose average rate has fallen below
// one message a second. Messages given back from a silent group come again after twice the time of the silence, but at
// the earliest after a second and at the latest after half a minute. So a slow group is kept busy, and a silent group
// is limited to its ordinary share.
//
// The deliverer needs a second to distinguish a slow group from a fast group. In that second, a flood of messages for
// the group may fill the memory of the lane from which they come, and so stop the lane. The judgement is kept until the
// group has had room for a minute. Floods that begin at the same time are recognised one after the other, because a
// lane is read in order: floods for four silent groups and a slow one stop the lane for about two seconds.
//
// While Run runs, the goroutine that handles an answer sends no message: sending takes three times as long as handling
// an answer. When one goroutine did both, 100,000 messages for one target that were due at the same time took 10 %
// longer.
//
// The messages for one target are sent in the order of the calls of Deliver. So when the stream of a target becomes
// known, the target changes its group only after all waiting messages for that target have been sent.
//
// If a target or a Delay-Rate-Key has a rate, each message gets a turn: see rates.go, and Limits in PROTOCOL.md. One
// instance sends all messages that share a rate: see package engine. A message that has to wait for its turn is given
// back with the turn, and waits in a lane. So the memory of this package does not grow with a backlog.
//
// # Tried and rejected
//
//   - To look up the stream of each subject when the subject is silent. At 5,000 new subjects a second the lookups fell
//     behind, silences were not judged in time, and core subscribers got thousands of duplicates.
//   - A share that does not depend on the other groups. A few silent groups, one of them with large messages, filled
//     the window for all groups, each time until their messages timed out.
//   - Groups of the first token only. All targets in "prod.>" would wait for the slowest service in "prod.>".
//   - To give back messages only for a silent target. A target that takes 1,000 messages a second filled its lane for
//     as long as its flood lasted.
//   - To give back immediately each message for which its group has no room. A burst for one fast target became slower,
//     because each message that comes again costs two more hops.
//   - To give back messages only while another group is slow or silent. During such a time, the first burst of a fast
//     group came a second late and out of order.
//   - The large share for all groups. A group that has never answered would hold half of the window for five seconds.
//   - New turns after a halt. The messages that had missed their turns got the next free turns, behind messages that
//     were accepted later. Each further halt mixed the order more.
//   - To judge a group before 250 ms of pressure. A stream on three distant servers under load takes a tenth of a
//     second for its first answer, and would have counted as silent.
package deliver
