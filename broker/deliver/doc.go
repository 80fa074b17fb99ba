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
//	evidence    gather.go, evidence.go     the facts about an answer or a silence; the verdict, a pure function
//	lookup      lookup.go, snapshot.go,    which streams of the account listen on a subject
//	            filters.go, subjects.go
//	targets     targets.go, rates.go,      the state of each subject, its rate, and the turns at that rate
//	            turns.go
//	counts      counts.go                  the outcomes of deliveries, by the names of targets
//	groups      groups.go, group.go,       the room of each group, its waiting messages, and those to be given back
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
// repeated under the same id, and package engine counts three silences in a row as one refusal.
//
// An acknowledgement has a sequence. If a stream is known to listen on the target, the acknowledgement must name that
// stream: a subscriber of the target may write anything into our inbox. A service may reply with JSON of its own that
// has a field "stream". So in mode request an acknowledgement counts as the service's reply, unless the account shows
// the stream on the target.
//
// Silence means something only when three things hold: the server has provably taken the message, some time has passed,
// and the account's streams are known. The streams are listed, all at once, when a silence is to be judged and the last
// list is some seconds old. The subjects on which the streams listen are matched here. While a list is outstanding,
// fails or is forbidden, no silence counts as a delivery. A stream without a leader is listed by name only, and its
// last known subjects are used. If none are known, it may listen on any subject. Then the cluster is asked about each
// subject that no other stream holds.
//
// Streams that the account does not list are unknown here: streams of another account, of another JetStream domain, or
// behind a subject mapping of the account. If such a stream has acknowledged within the last minute, silence is no
// delivery for that subject, nor for subjects with the same first two tokens. Before the first acknowledgement, and
// after a minute without one, 50 ms of silence count as the answer of core subscribers, although such a stream may only
// be slow. If core subscribers listen together with such a stream, they get copies. The remedy for both is to configure
// the modes of these targets: DELAY_DELIVER="shop.eu.>=stream,shop.ui.>=core".
//
// If NATS does not let the broker publish to a subject, that looks like silence too. The server reports it separately,
// and the report may come later: see Heard.
//
// # Lateness
//
// A delivery has one time, Result.At. Its lateness is measured up to that time. This rule exists once: the journal, the
// metrics, the page and the traces show the lateness that package engine derives from it.
//
//	a stream acknowledges, or a service replies  when the broker received the answer
//	silence counts as the delivery               when the server confirmed that it took the message, not when the
//	                                             wait for an answer was over
//
// The server confirms by answering a flush. There is at most one flush in 5 ms, so under load a core subscriber has a
// message up to 5 ms before this time.
//
// # Fairness
//
// A message that is not sent or not answered stays in the memory of its lane, and a lane whose memory is full stops for
// all targets. So the messages for one target are bounded there, in number and in bytes. A bound for each subject would
// be useless if subjects contain ids. Therefore targets are grouped: by the stream behind them, if the last list shows
// one, and otherwise by their first two tokens. While no other group is active, a group may have an eighth of the
// window outstanding, and all groups with the same first token a quarter. Otherwise a group may have a seventh of what
// they all leave free, and all groups with the same first token a third. So several silent groups leave room for one
// that answers, until there are so many groups that one message of each fills the window.
//
// A group that answers quickly has a larger share: half of the window or, if other groups are active, as much as they
// leave free. It is quick if in the last quarter of a second it took messages at the rate of a fast group (see below),
// and it stays quick while it answers and has room. If it falls silent, it has the ordinary share from the next quarter
// of a second on. Its outstanding messages end with their timeout; until then the other groups share the other half.
//
// A message for which its group has no room waits. A group is fast if it takes 2,000 messages a second, or 8 MiB a
// second (or a quarter of the window's bytes a second, if that is more). Any number of messages may wait for a fast
// group, so one healthy target can use the whole throughput of the broker. For a group that is not fast, messages that
// it would not take within three seconds, and messages above a quarter of the window, are given back as Stalled, with a
// time at which there should be room. They come again by way of a retry lane. All waiting messages of a silent group
// are given back, for twice as long as the group has been silent, at most half a minute. So a slow group is kept busy,
// and a silent group has its share and no more. To tell slow from fast takes a second, once for each group in a minute.
// In that second, a flood that fills its lane stops the lane. To recognise a silent group takes a quarter of a second.
// Floods that begin at the same time are recognised one after the other, because a lane is read in order: four silent
// floods and a slow one stop the lane for two seconds. If the messages that are given back take more memory than the
// lanes share, the lanes stop once more when these messages come again.
//
// A goroutine of its own sends messages that have waited. All answers come on one goroutine, and to send the next
// message would be three quarters of the cost of each answer: with both on one goroutine, 100,000 messages for one
// target that were due at the same time took a tenth longer.
//
// The messages for one target are sent in the order of the calls. So when the stream of a target becomes known, the
// target changes its group only when none of its messages wait.
//
// A target with a rate, or a key of messages, gives each message a turn: see rates.go, and Limits in PROTOCOL.md.
// Package engine has one instance send all messages that a rate counts together. A message that has to wait for its
// turn is given back with the turn, and waits in a lane. So the memory of this package does not grow with a backlog.
// Turns are times of a clock of the target. The clock stops while the target is halted, and is set back when messages
// have missed their turns. Otherwise all delayed turns would be due at the same time. So the messages keep their order
// and the rate, and a message that comes too soon waits again. Waiting messages are also given back when their owner
// stops (Recall), and no message is sent that its owner may not deliver any more.
//
// # Tried and rejected
//
//   - To send waiting messages on the goroutine that handles answers: see above for the cost.
//   - To look up the stream of each subject when its silence is noticed. At 5,000 new subjects a second the look-ups
//     fell behind, silences were not judged in time, and core subscribers got thousands of copies.
//   - A share for each subject. A silent stream with ids in its subjects filled the window for all lanes.
//   - A share that does not depend on the other groups. A few silent groups, one of them with large messages, filled
//     the window for all, each time until their acknowledgements timed out.
//   - Groups of the first token only. All of "prod.>" would wait for its slowest service.
//   - To call a target stalled only if it has answered nothing. A target that takes 1,000 a second filled its lane for
//     as long as its flood lasted.
//   - To give back messages above the share immediately. It made a burst for one fast target slower, because each
//     message that comes again costs two more hops.
//   - To give back only while another group is slow. Then the first burst of a fast group comes a second late and out
//     of order, as long as any other group is silent.
//   - The larger share for all. A group that has never answered would hold half of the window for five seconds.
//   - New turns after a halt, in the order in which messages come. Messages that had waited took the next turns, while
//     others came at their old turns and took turns in between. Each further halt mixed them more.
//   - To judge sooner. A stream on three distant servers under load takes a tenth of a second for its first answer.
package deliver
