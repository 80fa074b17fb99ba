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
//	delaybroker bench ── Run: marker, turns, waits, ledgers, report
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
// All sides use the same server, in turns. So a disturbance of the machine affects all. With several rounds, a ratio
// compares two turns of one round. Each turn has new streams and a new broker process.
//
//   - Broker: delaybroker serve with the settings of the environment. The load publishes a plain duration to its level,
//     and any other delay, or a time, to the intake.
//   - Scheduler: the server's own message scheduling (ADR-51), "Nats-Schedule: @at" on a subject for each message. Its
//     target must be in the same stream.
//   - Pipeline: reads a stream in order, waits until the head is due, publishes it with an id and the headers of a
//     broker, and purges delivered messages every 100 ms. It has no retries, no owner and no second delay. This is the
//     minimum for any sidecar, and so the best possible result of a broker. It has one stream, so it ignores the delay
//     if delays are mixed. In the scenarios ingest and pending it is a plain publish. It has no timers.
//
// # Measurements
//
// The payload contains the number of the message and its due time. Lateness is the time at which the target's stream
// stored the message, minus its due time. For plain subscribers it is the time of receipt, minus the due time. A delay
// in a level begins when the broker's stream has stored the message, a little after the publish. The broker writes that
// due time into Delay-Due, and "promised" is the lateness relative to it.
//
// A message is lost if it was accepted and has not arrived 15 s after the last due time and the last arrival. It is
// early if it arrives before the payload's time, or before Delay-Due. If the server is on another host, the run first
// compares the two clocks. An arrival less than half a round trip before the payload's time then does not count as
// early. Delay-Due and the time of storage are both times of servers, so there is no such margin for them. Twice is the
// number of duplicates, which are allowed. One refused publish ends a run, since the remaining load would differ.
//
// # Timers
//
// The load sets timers, cancels some and moves others. Each message of the load is an entry or a request, and its
// answer must confirm it. The answer to a set has the sequence that later messages expect. The cancelled timers have
// the last numbers. The ledger counts firings from number zero, so the firing of a cancelled timer counts as unknown.
// The moved timers have the first numbers. They are set for an hour later, and moved to the instant of all others.
//
// A broker works before the instant, when it reads due messages, and after the last arrival, when it deletes entries.
// So the CPU time of a firing counts from two seconds before the instant until the processes use less than 15 ms of CPU
// time in half a second. That wait ends at most half a minute after the last arrival. With rounds, it ends before the
// next round.
//
// All series of a run have the same cron expression, with a round at each multiple of its interval. They are set right
// after such an instant, because a schedule of the server cannot begin later. A broker's message contains the number of
// its round. For the server's schedules, the order of arrival is the number. A missed round counts as lost.
//
// # Cleanup
//
// A run leaves nothing behind. Its prefix is bench-xxxxxxxx, at random. Its run marker is a stream BENCH-XXXXXXXX-RUN
// with the prefix in its metadata. The run creates it first, removes it last, and writes a heartbeat into it every five
// seconds. If a later run finds a run marker without a heartbeat for a minute, by the server's clock, it removes the
// streams of that prefix: those with the metadata of a run, and those with a broker's metadata and this prefix. It does
// not remove a stream with such a name and without the metadata: another program owns it.
//
// # Tried and rejected
//
//   - A consumer at the target that measures during the run: for each side, it would cost the server as much as the
//     sidecar's reader, and so bring all ratios nearer to one. The run reads the stream afterwards.
//   - Counting arrivals by subject: for each such request, the server would count its subjects. The last sequence is
//     enough.
//   - One broker for all its turns: its heap and its streams would carry over to the next turn.
package bench
