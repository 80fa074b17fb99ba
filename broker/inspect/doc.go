// Package inspect reads the state of a broker from outside, by requests to JetStream and to the running instances. The
// operator's commands and the page use it. It prints nothing, and reads neither flags nor the environment.
//
//	Session ───▶ Inspector ──┬── Look       Lanes: the content and the reader of each stream
//	one user's   one         ├── Where      Whereabouts of one message
//	connection   broker's    ├── Retrying   the messages in the retry lanes, by target
//	             streams     ├── Ahead      Forecast: the number of due messages by time
//	                         ├── Pending    List of the waiting messages, by due time
//	                         ├── Provision  the streams that were created and changed
//	                         ├── Journal    the ends of messages, and the gaps in that list
//	                         └── Letters    the dead letters: count them, resend them, remove them
//
// # Refused requests
//
// The server does not answer a request that it refuses. It reports the refused subject on the connection, apart from
// all answers, and the caller would wait until the [Timeout]. So a [Session] receives every refusal and ends the
// request that is open at the time. Two kinds of caller use this:
//
//   - A command that needs all its answers takes a context of [Session.Allowed]. The first refusal ends the command and
//     is its error ([Cause]). Half a table would mislead.
//   - Package doctor reports refusals. It sends one request after the other, continues without the answer, and takes
//     the [Session.Refusals] as facts. If it may not subscribe to answers, it sends no more requests.
//
// # Trust
//
// Three sources name the reader of a lane. The first is the status of a running instance, then the server's state of
// the consumer, then the table of the instances. Any client that may publish below the subject of an answer can forge
// the first. So the answers are shown to people, and no decision depends on them.
//
// # Settings read from the streams
//
// An operator's shell seldom has the broker's settings. With the default levels, every level of a broker with other
// levels would look missing or retiring. [Inspector.Adopt] reads the prefix and the levels from the streams, if the
// operator did not set them.
//
// # The order of a lane
//
// In a level all messages wait equally long, so they leave it in the order in which they are stored. A client's message
// is due when it leaves the level, unless its Delay-Until is later. A hop is due at the time in its header. The intake
// and the retry lanes have no order.
//
//   - A forecast counts by the order (forecast_order.go), which is exact. It estimates from a sample how many of these
//     messages are due later, and when (forecast_sample.go). Each of its numbers has an error (forecast_slots.go).
//   - A list merges the lanes (pending_merge.go). It lists a message when no lane can have an earlier one.
//
// # Tried and rejected
//
//   - Cancelling a pending message by its Delay-Id from outside: delete the message at the leader, and answer
//     "cancelled" if no broker can have read it. No such answer is certain. A broker reads some hundreds of messages of
//     each lane ahead, and its client library as many again, so it may have read the whole of a short lane. Only the
//     broker knows which messages it has read, and its answer cannot be trusted (see above). A broker that is cut off
//     for some seconds does not answer, and delivers. A reader may even read a deleted message: its consumer may be on
//     a replica that lags. A cancel needs the lane's owner, or a message in the lane itself.
//   - Finding the limits of time slots by a binary search in a level: seventeen requests for each instead of one, and
//     deleted messages and other targets would count.
//   - Reading consecutive messages as a sample: messages that were published together are due together.
//   - One request for each stream, one after the other: seconds for forty streams across an ocean. The requests are
//     sent at once.
//   - Asking the instances once. Instances hand lanes to each other, and a lane in between would seem to have no owner.
package inspect
