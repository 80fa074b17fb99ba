// Package deadletter lets an operator find, resend and remove dead letters. A broker writes dead letters: see
// message.Request.DeadHeader.
//
// # A letter
//
// A dead letter is the original message, payload and headers, on delaydead.<code>[.<target…>], with the reason in its
// headers. The number of a letter is its sequence in the stream. A letter keeps the Delay-Id of its message. The
// Delay-Id is not unique: after a crash, two copies of one message may both become dead letters.
//
// # Resending
//
//	DELAY_DEAD ──▶ delaysys.retry.1s.<target> ──▶ [DELAY_RETRY_1s] ──▶ a broker: decide, as with any message
//	     ▲                    │ stored
//	     └──── remove ◀───────┘
//
// A resent message goes into a lane and not to its target. So the rules for all messages apply: the policy, the rate,
// the retries, and the check for duplicates. The message keeps its Delay-Id, and with it its Nats-Msg-Id at the target.
// Its attempts count from zero. The lane is the shortest retry lane, because only brokers publish there: in a level, a
// client could have used the same Nats-Msg-Id. From the retry lane, a due message is delivered immediately, and any
// other message moves to a level.
//
// The store removes the letter after the lane has acknowledged the message. After a crash between the two steps the
// letter still exists. A second resend publishes the same Nats-Msg-Id. Within the lane's duplicate window
// (DELAY_DEDUP_WINDOW), the lane stores the message only once. After the window, the message is delivered twice, under
// one Delay-Id. Another operator may have resent the letter and removed it. So before a resend, the store checks that
// the letter still exists.
//
// An operator may change headers and body with a resend (Change.Edit). Headers of the broker and of the server cannot
// be changed. The Nats-Msg-Id contains a digest of the edit. So after a crash, a resend with another edit is not a
// duplicate of the first resend.
//
// If the lane's stream reports a duplicate, and the stored copy is gone, the store concludes that an earlier resend
// succeeded, and removes the letter. A client that knew the Nats-Msg-Id could make the server store an answer with this
// id below delaysys. Then the letter would be removed without a resend. So the id ends with its own seal, which no
// client can compute.
//
// NATS requires no permission for the subject of an answer, so a client can make the server store an answer below
// delaydead. A resend of this answer would deliver a forged message. So a letter must have a broker's seal (see
// message.Keys), or the caller sets Change.Unsealed. The seal of a letter with the code bad_internal does not prove who
// wrote the message, so such a letter always needs Change.Unsealed. A letter stored before seals were required needs no
// seal.
//
// Store.DryRun checks the letter and the change, and stores nothing. A resend and a dry run need the letter's body,
// because the seal covers the body.
//
// Some letters cannot be resent. The store then keeps the letter, and the error has the reason: see the sentinels.
//
// # Removing
//
// Letters are removed one by one, by their sequence. A purge of a subject would also remove letters stored after the
// operator's listing. In a recreated stream, the sequences begin at one. So a caller should not use the letters of an
// old list.
//
// # Tried and rejected
//
//   - Publishing directly to the target: this would bypass the policy and the retries.
//   - A stream with work-queue retention, from which an operator consumes: tenants could no longer read their dead
//     letters.
package deadletter
