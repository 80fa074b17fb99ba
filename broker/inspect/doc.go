// Package inspect is what can be found out about a broker from outside: by the questions that JetStream and the
// running instances answer, without being one of them. It is what the operator's verbs know. It prints nothing, and
// reads neither flags nor the environment.
//
//	Session ───▶ Inspector ──┬── Look       Lanes: what each stream holds, and who reads it
//	one user's   one         ├── Where      Whereabouts of one message
//	connection   broker's    ├── Retrying   what waits in the retry lanes, by target
//	             streams     ├── Ahead      Forecast: how much is due when
//	                         ├── Pending    List of what waits, in the order in which it is due
//	                         ├── Provision  what was created and changed
//	                         ├── Journal    what became of deliveries, and what that answer is worth
//	                         └── Letters    the dead letters: count them, resend them, remove them
//
// # A question that is refused is not answered
//
// The server says that it refused a publish or a subscription on the connection, apart from all answers, and names
// the subject. Whoever waits would wait for the whole of [Patience]. So a [Session] hears every refusal and ends the
// question that is asked at the time: two kinds of caller use that.
//
//   - A verb that needs all its answers takes a context of [Session.Allowed]: the first refusal ends the verb, with
//     the refusal as its error ([Cause]). Half a table would mislead.
//   - Package doctor wants to know what is refused. It asks one question after the other, goes on without the answer,
//     and takes the [Session.Refusals] as facts. When it may not even listen to answers, it asks nothing more.
//
// # Whom to believe
//
// Who reads a lane is known from three sources, the better first: what a running instance says of itself, what the
// server says of its consumer, and the table that the instances keep. Any client with the right to publish below the
// subject of an answer can have written the first. So the answers are shown to people, and nothing is done on their
// account.
//
// # What the settings leave open, the streams say
//
// A person's shell seldom has the broker's settings. Judged by the defaults, every level of a broker with other
// levels would be missing, or retiring. [Inspector.Adopt] reads the prefix and the levels off the streams, where
// nobody set them.
//
// # What the order of a lane tells
//
// In a level all messages wait equally long, so it is in the order in which they leave it. That is all that its order
// tells: what clients published there is due then, unless Delay-Until says later, and what goes on from there is due
// when its header says. The intake and the retry lanes are in no order.
//
//   - A forecast counts by the order (forecast_order.go), which is exact, and estimates from a sample how much of it is
//     due later, and when (forecast_sample.go). Each of its numbers has an error (forecast_slots.go).
//   - A list merges the lanes (pending_merge.go). A message is listed when no lane can have one that comes earlier.
//
// # Tried and rejected
//
//   - Cancelling a pending message by its Delay-Id, from outside: delete it at the leader, and answer "cancelled" where
//     no broker can have read it. No such answer would be certain. A broker reads some hundreds of messages of each
//     lane ahead, however far from due, and its client as many again, so that in a lane that is not long, all of it is
//     in memory. What a broker has read only the broker can say, and not to us: see above, whom to believe. One that is
//     cut off for some seconds says nothing, and delivers. And what is deleted within an epoch may be read afterwards:
//     a reader's consumer may be on a replica that lags, and a message that is next in sequence is accepted without
//     asking the leader. It takes the lane's owner, or a message that says it in the lane itself.
//   - Finding the places of buckets by reading messages in the middle of a level, again and again: seventeen questions
//     for each instead of one, and deleted messages and other targets would count.
//   - Reading some messages in a row as a sample: those that were published together are due together.
//   - One question for each stream, one after the other: seconds for forty streams across an ocean. They are asked at
//     once.
//   - Asking the instances once. They hand lanes to each other, and a lane between two of them would be reported as
//     nobody's.
package inspect
