// Package deliver knows how a target is reached, and what counts as having reached it.
//
// Mode auto decides on evidence. Each delivery is published with a reply subject, and then
//
//	an acknowledgement of a stream         delivered
//	a refusal of a stream, or 503          refused: a failed attempt
//	silence, and no stream known           delivered to core subscribers, who do not answer
//	silence, and a stream known            not known: to be delivered again, under the same id
//
// Silence means something only after the server has provably taken the message and some time has passed. A stream is
// known from its last acknowledgement or from a look-up, which is a hint and no more: it finds nothing where the stream
// lies in another account, although acknowledgements come from there. Mode stream takes nothing but an acknowledgement;
// mode core takes everything but a 503; mode request takes a service's reply, and its silence for a refusal.
//
// A publish that NATS forbids the broker looks like silence too. The server says so apart, and later: see Heard.
//
// # Fairness
//
// One target may hold an eighth of the window. What is over that waits in the target's own queue, so that a slow target
// slows down nobody else; and when it answers nothing at all, what is over that is given back. A target with a rate gives
// each message a turn; what has to wait for it is given back with it, and waits in a lane. So nothing here grows with a
// backlog.
//
// What waits is given back too when its owner stops (Recall), and nothing is sent that its owner may not deliver any more.
package deliver
