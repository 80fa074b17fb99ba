// Package deadletter lets an operator find, resend and remove dead letters. A broker only writes them (see
// message.Request.DeadHeader) and never reads them.
//
// # A letter
//
// A dead letter is the message, payload and headers, as it was, on delaydead.<code>[.<target…>], with the reason in
// its headers. Its number is its sequence in the stream. Its Delay-Id is the message's and need not be unique: after a
// crash two copies of one message may both have died.
//
// # Resending
//
//	DELAY_DEAD ──▶ delaysys.retry.1s.<target> ──▶ [DELAY_RETRY_1s] ──▶ a broker: decide, as with any message
//	     ▲                    │ stored
//	     └──── remove ◀───────┘
//
// A message goes back into the lanes and not to its target, so that all rules of other messages hold: the policy, the
// rate, the retries, the duplicates. It keeps its Delay-Id, and with that its Nats-Msg-Id at the target; its attempts
// count from zero. It enters by the shortest retry lane, because only brokers publish there: a level shares its
// Nats-Msg-Ids with clients, which might have used ours. A message that is due is delivered from there at once. Another
// one goes on to its level.
//
// The letter is removed when the lane has acknowledged the message. After a crash between the two the letter is still
// there. If it is resent again, it is published under the same Nats-Msg-Id. Within the lane's duplicate window of 30 s
// it is stored once; later it is delivered twice, under one Delay-Id. Before a resend, the store asks whether the
// letter is still there: of two operators who resend the same letters, one may have a list older than that window.
//
// An operator may change headers and body on the way (Change.Edit). Headers of the broker and of the server cannot be
// changed. The Nats-Msg-Id holds a digest of the edit: after a crash, a resend with another edit is stored too, and not
// taken for the first.
//
// A "duplicate" whose copy is gone is believed to be such an earlier resend, and the letter is removed. So nobody else
// may know the Nats-Msg-Id, or a client that has an answer stored below delaysys, with headers of its choice, could
// have the letter removed unsent. The id ends with a seal of itself.
//
// NATS asks no permission for the subject of an answer, so a client can have one stored below delaydead. An operator
// who resends it would deliver any message for that client. So a letter must have a broker's seal (see message.Keys). A
// letter with the code bad_internal is resent only if the operator asks for that (Change.Unsealed). Letters stored
// before the time from which messages are sealed are believed without a seal.
//
// Store.Try makes the checks of a resend and stores nothing. Like a resend it needs the letter's body, which the seal
// covers.
//
// Some letters cannot be resent and stay where they are. The error says why: see the sentinels. No letter is lost.
//
// # Removing
//
// Letters are removed one by one, by their sequence. A purge of a subject would also remove letters that came after the
// operator looked. A stream that is deleted and created again counts from one again, so a caller that keeps a letter
// for longer than one batch should list it again.
//
// # Tried and rejected
//
// Publishing straight to the target would be simpler, but would bypass the policy and the retries. A stream with
// work-queue retention, from which an operator consumes, would hide the letters from the tenants that may read them.
package deadletter
