// Package bench measures a broker from outside: its lateness, throughput and cost. It also checks the broker's promises
// under the load. It has the load, the accounting and the processes of "delaybroker bench". Package test/rivals uses it
// too.
//
// # Dependencies
//
// Like broker/inspect, it depends on the contract (broker/message, levels), the metadata of streams (broker/streams)
// and the JetStream API, and not on the engine. The measured broker is the command itself, in its own process. The
// command parses flags, calls this package and prints.
//
//	delaybroker bench ── Run: run marker, turns, waits, ledgers, report
//	     │ stdin: order, then EOF          ▲ stdout: ready, progress, result
//	     ├── bench-part server    a nats-server, unless NATS_URL names one
//	     ├── bench-part broker    delaybroker serve          ┐ one of them at a time,
//	     ├── bench-part pipeline  the bare pipeline          ┘ and none for the scheduler
//	     └── bench-part load      publishes
//
// The load has its own process. Inside the measuring or the delaying process, a publisher would share that process's
// scheduler and garbage collector. Each part ends when its stdin is closed, even after a kill -9 of the run.
//
// # Sides
//
// All sides use the same server, one after the other, so a disturbance of the machine affects all. A turn is the
// measurement of one side. A round is one turn of each side. With several rounds, a ratio compares two turns of one
// round. Each turn has new streams and a new broker process.
//
//   - Broker: delaybroker serve with the settings of the environment. The load publishes plain durations to levels. It
//     publishes other delays and times to the intake.
//   - Scheduler: the server's own message scheduling (ADR-51), "Nats-Schedule: @at" on a subject for each message. Its
//     target must be in the same stream.
//   - Pipeline: reads a stream in order, waits until the head is due, publishes it with an id and the headers of a
//     broker, and purges delivered messages every 100 ms. It has no retries, no owner, no second delay and no timers.
//     This is the minimum for any sidecar, and so the best possible result of a broker. It has one stream, so it
//     ignores the delay if delays are mixed. In the scenarios ingest and pending it is a plain publish.
//
// # Measurements
//
// The payload contains the number of the message and its requested due time. Lateness is the time at which the target's
// stream stored the message, minus that due time. For plain subscribers, it is the time of receipt minus the due time.
// A delay in a level begins when the broker's stream has stored the message, a little after the publish. The broker
// writes the resulting due time into Delay-Due. "Promised" is the lateness relative to Delay-Due.
//
// An accepted message is lost if it has not arrived 15 s after the last due time and after the last arrival. A message
// is early if it arrives before its requested time, or before Delay-Due. If the run did not start the server, it first
// compares the server's clock with its own. Then an arrival at most half a round trip before the requested time does
// not count as early. Delay-Due and the time of storage are both times of servers, so they have no such margin. Twice
// is the number of duplicates, which are allowed. One refused publish ends a run, since the remaining load would
// differ.
//
// # Timers
//
// The load sets timers, cancels some and moves others. Each message of the load is an entry or a request, and the
// answer must confirm it. The answer to a set has the sequence that a later move or cancel expects. The cancelled
// timers have the last numbers, which the ledger does not have, so the firing of a cancelled timer counts as unknown.
// The moved timers have the first numbers. The load sets them for an hour after the due time of the others, and
// then moves them to that time.
//
// A broker works before the due time, when it reads the messages into memory, and after the last arrival, when it
// deletes entries. So the run counts the CPU time from two seconds before the due time until the processes use less
// than 15 ms of CPU time in half a second. The run waits for this calm at most half a minute after the last arrival.
// In the scenario rounds, it waits at most until two seconds before the next round.
//
// All series of a run have the same cron expression, with a round at each multiple of the interval. The load sets them
// right after a multiple, because a schedule of the server cannot begin later. A broker's message contains the number
// of its round. For the server's schedules, the run numbers the arrivals in their order. A missed round counts as lost.
//
// # Cleanup
//
// A run leaves no streams behind. It chooses a random prefix bench-xxxxxxxx. Its run marker is the stream
// BENCH-XXXXXXXX-RUN with the prefix in the metadata. The run creates the marker first and removes it last. Every five
// seconds it writes a heartbeat into the marker. If a later run finds a marker that had no heartbeat for a minute, by
// the server's clock, it removes all streams with that prefix in the metadata of a run or of a broker. A stream that
// has such a name without the metadata belongs to another program, so a run does not remove it.
//
// # Tried and rejected
//
//   - A consumer at the target that measures during the run. For each side, it would cost the server as much as the
//     sidecar's reader, and so bring all ratios nearer to one. The run reads the stream afterwards.
//   - Counting arrivals by subject. For each such request, the server would count the messages of each subject. The
//     last sequence is enough.
//   - One broker process for all turns. Its heap and its streams would affect the next turn.
package bench
