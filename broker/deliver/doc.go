// Package deliver publishes messages to their targets, finds out whether they arrived, and gives each target its share
// of the room.
//
// # The problem
//
// A target is any subject. A stream may listen on it, or a service, or core subscribers, or nobody. Nothing in a
// subject says which, and it may change at any time. Core subscribers never answer. Anybody who gets a message sees its
// reply subject, and may write anything there. And a target that is slow, silent or full must not hold up the others.
//
// # The parts
//
//	Deliverer   deliver.go, send.go        joins the parts, publishes, and acts on verdicts
//	evidence    gather.go, evidence.go     what is known when an answer comes, or none; the verdict, a pure function
//	lookup      lookup.go, snapshot.go,    which streams of the account listen on a subject
//	            filters.go, blanks.go
//	targets     targets.go, rates.go,      what is known of each subject, its rate, and the turns at that rate
//	            turns.go
//	counts      counts.go                  how deliveries ended, by the names of targets
//	groups      groups.go, group.go,       who has room, who waits, and who would wait too long
//	            pressure.go
//
// # Evidence
//
// Mode auto decides on evidence. Each delivery is published with a reply subject. Then these can happen:
//
//	a stream acknowledges                     delivered
//	a stream refuses, or the server says 503  refused: a failed attempt
//	silence, and no stream listens            delivered to core subscribers, who do not answer
//	silence, and a stream listens, or may     not known: delivered again, under the same id
//
// Mode stream accepts only an acknowledgement. Mode core accepts everything except a 503. Mode request accepts a
// service's reply, and counts silence as a refusal. In the other modes silence is no refusal by itself: the delivery is
// repeated under the same id, and package broker counts three silences in a row as one refusal.
//
// An acknowledgement has a sequence. If a stream is known to listen on the target, the acknowledgement must name that
// stream: a subscriber of the target may write anything into our inbox. A service may reply with JSON of its own that
// has a field "stream". So in mode request an acknowledgement counts as the service's reply, unless the account shows
// the stream on the target.
//
// Silence means something only when three things hold: the server has provably taken the message, some time has passed,
// and the account's streams are known. The streams are listed, all at once, when a silence is to be judged and the last
// list is some seconds old. The subjects on which the streams listen are matched here. While a list is outstanding,
// fails or is forbidden, no silence counts as a delivery. A stream whose leader is away is listed by name only; it is
// taken for what it was before. If it was never described, it may listen on anything. Then the cluster is asked about
// each subject that no other stream holds.
//
// Streams that the account does not list are not known: streams of another account, of another JetStream domain, or
// behind a subject mapping of the account. If such a stream has acknowledged within the last minute, silence is no
// delivery for that subject, nor for subjects with the same first two tokens. Before the first acknowledgement, and
// after a minute without one, 50 ms of silence count as the answer of core subscribers, although such a stream may only
// be slow. And core subscribers beside such a stream get copies. The cure for both is to say how these targets are
// reached: shop.eu.>=stream,shop.ui.>=core.
//
// If NATS does not let the broker publish to a subject, that looks like silence too. The server reports it separately,
// and the report may come later: see Heard.
//
// # Lateness
//
// A delivery has one time, Result.At. Its lateness is measured up to that time, and no copy of this rule exists: the
// journal, the metrics, the page and the traces show what package broker derives from it.
//
//	a stream acknowledges, or a service replies  when the answer reached us
//	silence counts as the delivery               when the server confirmed that it took the message, and not when the
//	                                             wait for an answer was over
//
// The server confirms by answering a flush. There is at most one flush in 5 ms, so under load a core subscriber has a
// message up to 5 ms before this time.
//
// # Fairness
//
// A message that is not sent or not answered stays in the memory of its lane, and a lane whose memory is full stops for
// all targets. So the messages of one target there are bounded, in number and in bytes. A bound for each subject would
// be worth nothing where subjects contain ids. Therefore targets are grouped: by the stream behind them, if the last
// list shows one, and otherwise by their first two tokens. Alone, a group may have an eighth of the window outstanding,
// and the groups of one first token a quarter together. Beside others, a group may have a seventh of what is free, and
// the groups of one first token a third. So several silent groups leave room for one that answers, until there are so
// many groups that one message of each fills the window.
//
// A group that answers quickly has a larger share: half of the window alone, and beside others as much as is free. It
// is quick if in the last quarter of a second it took as many messages as a fast group does (see below), and it stays
// quick while it answers and has room. If it falls silent, it gets no more than others do from the next quarter of a
// second on; what it has outstanding ends with its time-out. Until then the others share the other half.
//
// A message for which its group has no room waits. A group is fast if it takes 2,000 messages a second, or 8 MiB (or a
// whole window of bytes within four seconds, if that is more). Any number may wait for a fast group: so one healthy
// target alone uses the whole pipe. For another group, messages that it would not take within three seconds, and
// messages beyond a quarter of the window, are given back as Stalled, with a time at which there should be room. They
// come again by way of a retry lane. A group that answers nothing gives back all that wait, for twice as long as it has
// been silent, at most half a minute. So a slow group is kept busy and no more, and a silent group has its share. It
// takes a second to tell slow from fast, once for each group in a minute; in that second, a flood that fills its lane
// stops the lane. A silent group shows in a quarter of a second. Floods that begin at once are told apart one after the
// other, because a lane is read in order: four silent floods and a slow one stop the lane for two seconds.
//
// What has waited is sent by a goroutine of its own. All answers come on one goroutine, and where something waits,
// sending is three quarters of what an answer costs: with both on one goroutine, 100,000 messages that were due at once
// for one target took a tenth longer.
//
// The messages for one target are sent in the order of the calls. So when the stream of a target becomes known, the
// target changes its group only once nothing of it waits.
//
// A target with a rate, or a key of messages, gives each message a turn (see Limits). Package broker has one instance
// send all that a rate counts together. A message that has to wait for its turn is given back with the turn,
// and waits in a lane. So nothing here grows with a backlog. The turns are by a clock of the target's own, which stops
// while the target is halted, and is set back when messages have missed their turns, or what nothing could be sent for
// would come at once. So the messages keep their order and the rate, and one that comes too soon waits again. Waiting
// messages are also given back when their owner stops (Recall), and no message is sent that its owner may not deliver
// any more.
//
// # Tried and rejected
//
//   - To send, on the goroutine that takes in an answer, what the answer makes room for.
//   - To look up the stream of each subject when its silence is noticed. At 5,000 new subjects a second the look-ups
//     fell behind, silences were not judged in time, and core subscribers got thousands of copies.
//   - A share for each subject. A silent stream with ids in its subjects filled the window for all lanes.
//   - A share that does not depend on the other groups. A few silent groups, one of them with large messages, filled
//     the window for all, each time for as long as their acknowledgements are waited for.
//   - Groups of the first token only. All of "prod.>" would wait for its slowest service.
//   - To call a target stalled only if it has answered nothing. A target that takes 1,000 a second filled its lane for
//     as long as its flood lasted.
//   - To give back at once what is over the share. It made a burst for one fast target slower, because each message
//     that comes again costs two more hops.
//   - To give back only while another group is slow. Then the first burst of a fast group comes a second late and out
//     of order, as long as anything beside it is silent.
//   - The larger share for all. A group that was never seen to answer would hold half of the window for five seconds.
//   - New turns for all after a halt, as they come. What had waited took turns again from now on, while the others came
//     at the times of their old turns and took theirs in between. Each further halt mixed them more.
//   - To judge sooner. A stream on three distant servers under load takes a tenth of a second for its first answer.
package deliver
