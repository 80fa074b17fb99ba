// Package deadletter lets an operator find, resend and remove dead letters. A broker writes dead letters (see
// message.Request.DeadHeader) and never reads them.
//
// # A letter
//
// A dead letter is the original message, payload and headers, on delaydead.<code>[.<target…>], with the reason in its
// headers. The number of a letter is its sequence in the stream. Its Delay-Id is the message's Delay-Id, and need not
// be unique: after a crash, two copies of one message may both become dead letters.
//
// # Resending
//
//	DELAY_DEAD ──▶ delaysys.retry.1s.<target> ──▶ [DELAY_RETRY_1s] ──▶ a broker: decide, as with any message
//	     ▲                    │ stored
//	     └──── remove ◀───────┘
//
// A resent message goes into a lane and not to its target. So the rules for all messages apply: the policy, the rate,
// the retries, and the check for duplicates. The message keeps its Delay-Id, and so its Nats-Msg-Id at the target. Its
// attempts count from zero. The message enters the shortest retry lane, because only brokers publish there. In a level,
// a client might have used the same Nats-Msg-Id. From the retry lane, a due message is delivered immediately, and any
// other message moves to a level.
//
// The store removes the letter after the lane has acknowledged the message. After a crash between the two steps the
// letter still exists. A second resend publishes the same Nats-Msg-Id. Within the lane's duplicate window of 30 s, the
// lane stores the message only once. After that, the message is delivered twice, under one Delay-Id. Before a resend,
// the store checks that the letter still exists: another operator may have resent the letter before that window began.
//
// An operator may change headers and body with a resend (Change.Edit). Headers of the broker and of the server cannot
// be changed. The Nats-Msg-Id contains a digest of the edit. So after a crash, a resend with a different edit is not a
// duplicate of the first resend.
//
// If the lane's stream reports a duplicate, and the stored copy is gone, the store concludes that an earlier resend
// succeeded, and removes the letter. A client that knew the Nats-Msg-Id could make the server store an answer with this
// id below delaysys, and the letter would be removed unsent. So the id ends with its own seal, which no client can
// compute.
//
// NATS requires no permission for the subject of an answer, so a client can make the server store an answer below
// delaydead. An operator who resends this answer would deliver a message for that client. So a letter must have a
// broker's seal (see message.Keys). A letter with the code bad_internal is resent only if the operator explicitly
// requests it (Change.Unsealed). A letter stored before seals were required needs no seal.
//
// Store.DryRun performs the checks of a resend and stores nothing. Like a resend it needs the letter's body, which the
// seal covers.
//
// Some letters cannot be resent. The store then keeps the letter, and the error has the reason: see the sentinels.
//
// # Removing
//
// Letters are removed one by one, by their sequence. A purge of a subject would also remove letters that came after the
// operator's listing. The sequences of a stream that was deleted and created again begin at one. So a caller that has
// kept listed letters for longer than one batch should list them again.
//
// # Tried and rejected
//
//   - Publishing directly to the target. This would be simpler, but would bypass the policy and the retries.
//   - A stream with work-queue retention, from which an operator consumes. Tenants with permission to read their dead
//     letters could no longer read them.
package deadletter
