// Package deadletter is the dead letters as an operator handles them: find, resend, remove. A broker only writes them
// (see message.Request.DeadHeader) and never reads them.
//
// # A letter
//
// A dead letter is the message as it was, payload and headers, on delaydead.<code>[.<target…>], with the reason in
// its headers. Its number is its sequence in the stream. Its Delay-Id is the message's and need not be unique: after a
// crash two copies of one message may both have died.
//
// # Resending
//
//	DELAY_DEAD ──▶ delaysys.retry.1s.<target> ──▶ [DELAY_RETRY_1s] ──▶ a broker: decide, as with any message
//	     ▲                    │ stored
//	     └──── remove ◀───────┘
//
// A message goes back into the lanes and not to its target, so that everything holds which holds for others: the
// policy, the rate, the retries, the duplicates. It keeps its Delay-Id, and with that its Nats-Msg-Id at the target;
// its attempts begin anew. It enters by the shortest retry lane, because nothing but brokers publishes there: a level
// shares its Nats-Msg-Ids with clients, who might have used ours. What is due is delivered from there at once; what is
// not goes on to its level.
//
// The letter is removed when the lane has acknowledged. A crash between the two leaves the letter, and resending it
// again publishes under the same Nats-Msg-Id: within the duplicate window of the lane, 30 s, it is stored once. After
// that it is delivered twice, under one Delay-Id.
//
// Whoever can have something put below delaydead, which NATS asks no permission for where an answer goes, could
// otherwise have anything delivered by an operator who resends. So a letter must have a broker's seal, see
// message.Keys, and what a broker itself buried as bad_internal goes only where somebody says so for it
// (Change.Unsealed). What was stored before the time from which messages are sealed is believed as it is.
//
// Some letters stay where they are, and the error says why: see the sentinels. None of them loses anything.
//
// # Removing
//
// Letters are removed one by one, by their sequence, never by a purge of a subject: that would take along what came
// after somebody looked. A stream that is deleted and created anew counts from one again; whoever holds a letter for
// longer than it takes to go through a batch should look again.
//
// # Rejected
//
// Publishing straight to the target would be simpler, and another way around the policy and the retries. A stream with
// work-queue retention, from which an operator consumes and acknowledges, would hide from tenants what they may read.
package deadletter
