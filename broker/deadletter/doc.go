// Package deadletter lets an operator find, resend and remove dead letters. A broker writes dead letters: see
// message.Request.DeadHeader.
//
// # A letter
//
// A dead letter has the payload and the client's own headers of the message, and the reason in further headers. Its
// subject is delaydead.<code>[.<target…>]. The number of a letter is its sequence in the stream. A letter keeps the
// Delay-Id of its message. The Delay-Id is not unique: after a crash, two copies of one message may both become dead
// letters.
//
// # Resending
//
//	DELAY_DEAD ──▶ delaysys.retry.1s.<target> ──▶ [DELAY_RETRY_1s] ──▶ a broker: decide, as with any message
//	     ▲                    │ stored
//	     └──── remove ◀───────┘
//
// A resent message goes into a lane and not to its target. So the rules for all messages apply: the allowed targets,
// the rate, the retries, and the check for duplicates. The message keeps its Delay-Id, and with it its Nats-Msg-Id at
// the target. Its attempts count from zero. The lane is a retry lane, and the shortest, because clients may not publish
// there: in a level, a client could have used the same Nats-Msg-Id. From the retry lane, a due message is delivered
// immediately, and any other message moves to a level.
//
// The store removes the letter after the lane has acknowledged the message. After a crash between the two steps the
// letter still exists. A second resend publishes the same Nats-Msg-Id. Within the lane's duplicate window
// (DELAY_DEDUP_WINDOW), the lane stores the message only once. After the window, the message is delivered twice, under
// one Delay-Id. Another operator may have resent the letter and removed it. So before a resend, the store checks that
// the letter still exists.
//
// An operator may change the body, the client's own headers, and the options of the request, such as Delay-Until
// (Resend.Edit). The Nats-Msg-Id contains a digest of the edit. So after a crash, a resend with another edit is not a
// duplicate of the first resend.
//
// If the lane's stream reports a duplicate, and the stored copy is gone, the store concludes that an earlier resend
// succeeded, and removes the letter. But NATS requires no permission for the reply subject of a request. So a client
// can name a subject of the lane as its reply subject, and the lane stores the server's reply. If a client could give
// the reply the Nats-Msg-Id of the resend, the letter would be removed without a resend. So this Nats-Msg-Id ends with
// a seal, which no client can compute.
//
// In the same way, the stream of dead letters can get a forged letter. So a letter must have a broker's seal (see
// message.Keys), or the caller sets Resend.Unsealed. The seal of a letter with the code bad_internal does not prove who
// wrote the message, so such a letter always needs Resend.Unsealed.
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
