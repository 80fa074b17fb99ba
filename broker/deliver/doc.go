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
// mode core takes everything but a 503.
//
// One target may hold an eighth of the window. What is over that waits in the target's own queue, so that a slow target
// slows down nobody else; and when it answers nothing at all, what is over that is given back.
package deliver
