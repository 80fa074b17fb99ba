// Package deliver knows how a target is reached, and what counts as having reached it.
//
// # Evidence
//
// Mode auto decides on evidence. Each delivery is published with a reply subject, and then
//
//	an acknowledgement of a stream            delivered
//	a refusal of a stream, or 503             refused: a failed attempt
//	silence, and no stream listens            delivered to core subscribers, who do not answer
//	silence, and one listens, or may          not known: to be delivered again, under the same id
//
// Mode stream takes nothing but an acknowledgement; mode core takes everything but a 503; mode request takes a service's
// reply, and its silence for a refusal. An acknowledgement has a sequence, and is that of the stream which is known to
// listen, if one is: a subscriber of the target may write what it likes into our inbox, and a service may reply with JSON
// of its own that has a field "stream". In mode request an acknowledgement is the service's reply unless the account shows
// that stream on the target.
//
// Silence means something only after the server has provably taken the message and some time has passed, and when the
// account's streams are known: they are listed, all at once, when a silence is to be judged and the last list is some
// seconds old. The subjects that they listen on are matched here. As long as a list is outstanding, fails or is forbidden,
// no silence is a delivery. A stream whose leader is away is listed by name only, and is what it was before. If it was
// never described, it may listen on anything, and only what another stream holds can be judged.
//
// What the account does not list cannot be known: streams of another account, of another JetStream domain, or behind a
// subject mapping of the account. Where one acknowledged within the last minute, silence is no delivery for that subject,
// nor for those that share its first two tokens. For the first message of all, or after a minute without one, 50 ms of
// silence pass for core subscribers although such a stream may only be slow; and core subscribers beside such a stream get
// copies. Both have the same cure, which is to say how these targets are reached: shop.eu.>=stream,shop.ui.>=core.
//
// A publish that NATS forbids the broker looks like silence too. The server says so apart, and later: see Heard.
//
// # Fairness
//
// What is not sent or not answered stays in the memory of its lane, and a lane whose memory is full stops for everybody.
// So what one target may have there is bounded, in messages and in bytes. A bound for each subject is worth nothing where
// subjects carry ids; therefore targets are grouped: by the stream behind them, where the last list shows one, and
// otherwise by their first two tokens. Alone, a group has an eighth of the window outstanding, and the groups of one first
// token have a quarter together. Beside others, it has as large a part of what these leave: a seventh of what is free, or a
// third. So several that are silent leave room for one that answers, however many they are, until one each fills the window.
//
// What a group has no room for waits. A group that takes 2,000 messages a second, or 8 MiB (or a whole window of bytes
// within four seconds, if that is more), is fast, and any number may wait for it: so one healthy target alone uses the
// whole pipe. Of another, what it would not take within three seconds, or what is more than a quarter of the window, is given
// back as Stalled, with a time at which there should be room; it comes again then by way of a retry lane. One that answers
// nothing gives back all that waits, for twice as long as it has been silent, half a minute at most. So a slow one is kept
// busy and no more, and a silent one has its share. It takes a second to tell them apart, once for each group in a minute;
// for so long a flood that fills its lane stops it. A silent one shows in a quarter of that. Floods that begin at once are
// told apart one after the other, since a lane is read in order: four silent ones and a slow one stop it for two seconds.
//
// What is sent of one target is sent in the order of the calls. So a target whose stream becomes known changes its group only
// when nothing of it waits.
//
// A target with a rate gives each message a turn; what has to wait for it is given back with it, and waits in a lane. So
// nothing here grows with a backlog. What waits is given back too when its owner stops (Recall), and nothing is sent that
// its owner may not deliver any more.
//
// # What was tried and rejected
//
// To look up the stream of each subject when its silence is heard: at 5,000 new subjects a second the look-ups fell behind,
// silences were not judged in time, and core subscribers got thousands of copies. A share for each subject: a silent stream
// with ids in its subjects filled the window for all lanes. To call a target stalled only when it has answered nothing: one
// that takes 1,000 a second filled its lane for as long as its flood lasted. Groups of the first token alone: all of
// "prod.>" would wait for its slowest service. To give back what is over the share at once: it made a burst for one fast
// target slower, since each message that comes again costs two more hops. To do so only while another group is slow: then the
// first burst of a fast one comes a second late and out of order, for as long as anything beside it is silent. To judge sooner:
// a stream of three distant servers under load takes a tenth of a second for its first answer. A share that does not depend on
// the others: a few silent groups, one of them with large messages, filled the window for all, each time for as long as their
// acknowledgements are waited for.
package deliver
