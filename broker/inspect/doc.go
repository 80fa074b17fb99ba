// Package inspect reads and changes the state of a broker from outside, by requests to JetStream and to the running
// instances. The operator's commands and the page use it. It prints nothing, and reads neither flags nor the
// environment.
//
//	Session ───▶ Inspector ──┬── Lanes      the content and the reader of each stream
//	one user's   one         ├── Where      Whereabouts: the place and the state of one message
//	connection   broker's    ├── Retrying   the messages in the retry lanes, by target
//	             streams     ├── Forecast   the number of pending messages, by due time
//	                         ├── Pending    PendingList: the pending messages, in the order of their due times
//	                         ├── Provision  the changes made to streams, and the drift: what still differs
//	                         ├── Journal    the records of deliveries and dead letters, and how many are missing
//	                         └── Letters    the dead letters: count, resend and remove them
//
// # Refused requests
//
// The server does not answer a request that it refuses. It reports the refused subject as an error of the connection,
// which does not name the request. The caller would wait for the whole timeout. So a [Session] handles these errors and
// ends the open request. A Session has two kinds of callers:
//
//   - A command that needs all answers takes a context from [Session.WithRefusal]. The first refusal ends the command
//     and is its error ([Cause]). An incomplete table would mislead.
//   - Package doctor continues after a refusal, without the answer, and reports the [Session.Refusals]. If the server
//     refuses the subscription to answers, doctor sends no more requests.
//
// # Trust
//
// Two sources tell who reads a lane: the sealed status of a running instance, and the claim of the active instance. A
// fresh claim shows only that an instance works. Any client that may publish to the reply subject can forge a status.
// So only a status with a broker's seal names a reader. Without the brokers' secret, the Inspector cannot check a seal,
// and every status counts.
//
// # Settings read from the streams
//
// An operator's shell seldom has the broker's settings. If the broker has other levels than the default levels, an
// Inspector with the default settings would report default levels as missing. So [Inspector.Adopt] reads the prefix and
// the levels from the streams, unless the operator has set them.
//
// # The order of a lane
//
// In a level all messages wait equally long, so they leave it in the order in which they are stored. A client's message
// is due when it leaves the level, or later by Delay-Until or Delay-Spread. A message that a broker moved into the
// level is due at the time in its header. The other lanes are not sorted by due time as a whole.
//
//   - A forecast counts the messages that leave a level in each interval (forecast_order.go). This count is exact,
//     unless it needs more than maxCuts requests. A sample gives the share and the due times of the messages that are
//     due after they leave (forecast_sample.go), with a margin of error (forecast_slots.go).
//   - A list merges the lanes (pending_merge.go). The list gets its next message when no lane can contain a message
//     that is due earlier.
//
// # Tried and rejected
//
//   - Cancelling a pending message by its Delay-Id from outside. The command would delete the message at the stream's
//     leader, and answer "cancelled" if no broker can have read the message. But the command cannot be certain of that.
//     A broker prefetches some hundreds of messages of each lane, and its client library prefetches as many. That may
//     be the whole lane. Only the broker knows which messages it has read, and clients can forge its answer. A broker
//     without a connection does not answer for some seconds, and then delivers. A consumer on a lagging replica may
//     still read a deleted message. A cancel is certain only if the lane's owner makes it, or if it is an entry in the
//     stream, as for named timers.
//   - Binary search for the sequence at which each interval begins in a level. The search takes seventeen requests for
//     each interval instead of one count. Its result, a difference of two sequences, includes deleted messages and the
//     messages for other targets.
//   - A sample of consecutive messages: messages that were published together are due together.
//   - Sequential requests for the streams: they take seconds for forty streams across an ocean.
//   - A single request to the instances: during a handover, a lane would seem to have no owner. So Lanes repeats the
//     request.
package inspect
