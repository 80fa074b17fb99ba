// Package deadletter lets an operator find, resend and remove dead letters. A broker only writes them (see
// message.Request.DeadHeader) and never reads them.
//
// # A letter
//
// A dead letter is the original message, payload and headers, on delaydead.<code>[.<target…>], with the reason in its
// headers. Its number is its sequence in the stream. Its Delay-Id is the message's and need not be unique: after a
// crash two copies of one message may both have become dead letters.
//
// # Resending
//
//	DELAY_DEAD ──▶ delaysys.retry.1s.<target> ──▶ [DELAY_RETRY_1s] ──▶ a broker: decide, as with any message
//	     ▲                    │ stored
//	     └──── remove ◀───────┘
//
// A message goes back into the lanes and not to its target, so all rules of other messages apply: the policy, the rate,
// the retries, and the check for duplicates. The message keeps its Delay-Id, and so its Nats-Msg-Id at the target. Its
// attempts count from zero. It enters the shortest retry lane, because only brokers publish there. Clients publish into
// the levels, and one of them might have used the same Nats-Msg-Id there. From the retry lane, a due message is
// delivered immediately. Any other message moves to a level.
//
// The store removes the letter after the lane has acknowledged the message. After a crash between the two steps the
// letter still exists. A second resend publishes the same Nats-Msg-Id. Within the lane's duplicate window of 30 s, the
// lane stores the message only once. After that, the message is delivered twice, under one Delay-Id. Before a resend,
// the store checks that the letter still exists: another operator may have resent the letter longer ago than that
// window.
//
// An operator may change headers and body with a resend (Change.Edit). Headers of the broker and of the server cannot
// be changed. The Nats-Msg-Id contains a digest of the edit. So after a crash, a resend with another edit is not a
// duplicate of the first one.
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
// Some letters cannot be resent. They are kept, and the error has the reason: see the sentinels. No letter is lost.
//
// # Removing
//
// Letters are removed one by one, by their sequence. A purge of a subject would also remove letters that came after the
// operator's listing. The sequences of a stream that was deleted and created again begin at one. So a caller that has
// kept listed letters for longer than one batch should list them again.
//
// # Tried and rejected
//
// Publishing to the target itself would be simpler, but would bypass the policy and the retries. A stream with
// work-queue retention, from which an operator consumes, would hide the letters from the tenants with permission to
// read them.
package deadletter
