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
// The server does not answer a request that it refuses. It reports the refused subject on the connection, as an error
// without a request. The caller would wait until the [Timeout]. So a [Session] receives every such error and ends the
// open request. It has two kinds of callers:
//
//   - A command that needs all answers takes a context from [Session.Allowed]. The first refusal ends the command and
//     is its error ([Cause]). An incomplete table would mislead.
//   - Package doctor reports refusals. It sends one request after the other, continues without the answer, and reports
//     the [Session.Refusals]. If the server refuses its subscription to answers, it sends no more requests.
//
// # Trust
//
// Three sources name the reader of a lane: first the status of a running instance, then the server's state of the
// consumer, then the instances' table of owners. Any client that may publish to the reply subject can forge a status.
// So people may see these answers, and no decision depends on them.
//
// # Settings read from the streams
//
// An operator's shell seldom has the broker's settings. With the default settings, the levels of a broker with other
// levels would look missing or retiring. So [Inspector.Adopt] reads the prefix and the levels from the streams, if the
// operator did not set them.
//
// # The order of a lane
//
// In a level all messages wait equally long, so they leave it in the order in which they are stored. A client's message
// is due when it leaves the level, unless its Delay-Until is later. A hop is due at the time in its header. The intake
// and the retry lanes have no order.
//
//   - A forecast counts by the order (forecast_order.go), which is exact. Some of these messages are due later: a
//     sample gives their number and their due times (forecast_sample.go). Each of its numbers has an error
//     (forecast_slots.go).
//   - A list merges the lanes (pending_merge.go). It lists a message when no lane can contain an earlier one.
//
// # Tried and rejected
//
//   - Cancelling a pending message by its Delay-Id from outside. It would delete the message at the stream's leader,
//     and answer "cancelled" if no broker can have read the message. No such answer is certain. A broker reads some
//     hundreds of messages of each lane ahead, and its client library as many again. So it may have read the whole of a
//     short lane. Only the broker knows which messages it has read, and its answer can be forged. A broker without a
//     connection does not answer for some seconds, and then delivers. A consumer on a replica that lags may still read
//     a deleted message. A cancel needs the lane's owner, or a message in the lane itself.
//   - Binary search for the position of each time slot in a level: it takes seventeen requests for each slot instead of
//     one, and it counts deleted messages and other targets.
//   - A sample of consecutive messages: messages that were published together are due together.
//   - One request for each stream, one after the other: seconds for forty streams across an ocean. The requests are
//     concurrent.
//   - One request to the instances. Instances hand lanes to each other, and meanwhile the lane would seem to have no
//     owner.
package inspect
