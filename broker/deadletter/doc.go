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
// the retries, the duplicates. It keeps its Delay-Id, and so its Nats-Msg-Id at the target. Its attempts count from
// zero. It enters by the shortest retry lane, because only brokers publish there: a level shares its Nats-Msg-Ids with
// clients, which might have used the same one. A due message is delivered from there immediately. Any other moves on to
// its level.
//
// The store removes the letter after the lane has acknowledged the message. After a crash between the two steps the
// letter still exists. A second resend publishes the same Nats-Msg-Id. Within the lane's duplicate window of 30 s the
// lane stores it once. Later it is delivered twice, under one Delay-Id. Before a resend, the store checks that the
// letter still exists. If two operators resend the same letters, the list of one may be older than that window.
//
// An operator may change headers and body with a resend (Change.Edit). Headers of the broker and of the server cannot
// be changed. The Nats-Msg-Id has a digest of the edit. So after a crash, a resend with another edit does not count as
// a duplicate of the first.
//
// If the stream reports a duplicate whose copy is gone, the store concludes that an earlier resend succeeded, and
// removes the letter. So no client may know the Nats-Msg-Id. Otherwise a client could make the server store an answer
// with this id below delaysys, and the letter would be removed unsent. The id ends with a seal of itself.
//
// NATS asks no permission for the subject of an answer, so a client can make the server store one below delaydead. An
// operator who resends it would deliver a message for that client. So a letter must have a broker's seal (see
// message.Keys). A letter with the code bad_internal is resent only if the operator explicitly requests it
// (Change.Unsealed). A letter stored before seals were required needs none.
//
// Store.Try performs the checks of a resend and stores nothing. Like a resend it needs the letter's body, which the
// seal covers.
//
// Some letters cannot be resent and are kept. The error has the reason: see the sentinels. No letter is lost.
//
// # Removing
//
// Letters are removed one by one, by their sequence. A purge of a subject would also remove letters that came after the
// operator's listing. A stream that was deleted and created again counts from one. So a caller should list a letter
// again if it has kept it for longer than one batch.
//
// # Tried and rejected
//
// Publishing straight to the target would be simpler, but would bypass the policy and the retries. A stream with
// work-queue retention, from which an operator consumes, would hide the letters from the tenants with permission to
// read them.
package deadletter
