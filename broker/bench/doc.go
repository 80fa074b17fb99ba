// Package bench measures a broker from outside: its lateness, throughput and cost, and whether it keeps its promises
// meanwhile. It has the load, the accounting and the processes of "delaybroker bench". Package test/rivals uses it too.
//
// # Dependencies
//
// Like broker/inspect, it uses the contract (broker/message, levels), the metadata of streams (broker/streams) and the
// JetStream API, and nothing of the engine. The engine does not use it. The measured broker is the command itself, in a
// process of its own. The command parses flags, calls this package and prints.
//
//	delaybroker bench ── Run: marker, turns, waits, ledgers, report
//	     │ stdin: order, then EOF          ▲ stdout: ready, progress, result
//	     ├── bench-part server    a nats-server, unless NATS_URL names one
//	     ├── bench-part broker    delaybroker serve          ┐ one of them at a time,
//	     ├── bench-part pipeline  the bare pipeline          ┘ and none for the scheduler
//	     └── bench-part load      publishes
//
// The load has a process of its own. A publisher inside the measuring or the delaying process would share its scheduler
// and its garbage collector. Each part ends when its stdin is closed, so also after kill -9 of the run.
//
// # Sides
//
// All sides use the same server, in turns, so that a disturbance of the machine affects all. With several rounds, a
// ratio compares two turns of one round. Each turn has new streams, and a new broker process.
//
//   - Broker: delaybroker serve with the settings of the environment. The load publishes a plain duration to its level,
//     and any other delay, or a time, to the intake.
//   - Scheduler: the server's own message scheduling (ADR-51), "Nats-Schedule: @at" on a subject for each message. Its
//     target must be in the same stream.
//   - Pipeline: reads a stream in order, waits until the head is due, publishes with an id and the headers of a broker,
//     and purges delivered messages every 100 ms. It has no retries, no owner and no second delay. This is the minimum
//     of any sidecar, and so the best possible result of a broker. It has one stream, so with mixed delays it delays no
//     message at all. In the scenarios ingest and pending it is a plain publish. It has no timers.
//
// # Measurements
//
// The payload contains the number of the message and its due time. Lateness is the time at which the target's stream
// stored the message, minus its due time. For plain subscribers it is the time of receipt, minus the due time. A delay
// in a level begins when the broker's stream has stored the message, a little after the publish. The broker writes that
// due time into Delay-Due, and "promised" is the lateness relative to it.
//
// A message is lost if it was accepted and has not arrived 15 s after the last due time and the last arrival. It is
// early if it arrives before the payload's time, or before Delay-Due. If the server is on another host, the run
// compares its clock with ours first. Then an arrival that is less than half a round trip before the payload's time is
// not early. Delay-Due and the time of storage are both by servers, so for them there is no such margin. Twice is the
// number of copies, which are allowed. One refused publish ends a run, since the rest would be another load.
//
// # Timers
//
// The load sets timers, cancels some and moves others. Each message of the load is an entry or a request, and its
// answer must confirm it. The answer to a set has the sequence that the later messages expect. The cancelled timers
// have the last numbers. The ledger counts firings from number zero, so a cancelled timer that fires counts as unknown.
// The moved timers have the first numbers. They are set for an hour later, and moved to the instant of all others.
//
// A broker works before the instant, when it reads due messages, and after the last arrival, when it deletes. So the
// CPU time of a firing counts from two seconds before the instant until the processes use less than 15 ms of CPU time
// in half a second. The wait for that ends at most half a minute after the last arrival, and with rounds before the
// next one.
//
// All series of a run have one cron, with a round at each multiple of its interval. They are set right after such an
// instant, because a schedule of the server cannot begin later. A broker's message contains the number of its round.
// For the server's schedules, the order of arrival is the number. A missed round counts as lost.
//
// # Cleanup
//
// A run leaves nothing behind. Its prefix is bench-xxxxxxxx, at random. Its run marker is a stream
// BENCH-XXXXXXXX-RUN with the prefix in its metadata: created first, removed last, with a heartbeat every five seconds.
// If a later run finds a run marker without a heartbeat for a minute, by the server's clock, it removes the streams of
// that prefix: those with the metadata of a run, and those with a broker's metadata and this prefix. It leaves a stream
// alone whose name has such a prefix but that lacks the metadata: somebody else owns it.
//
// # Tried and rejected
//
//   - A consumer at the target that measures during the run: it would cost the server as much as the sidecar's reader
//     does, for each side, and so bring all ratios nearer to one. The run reads the stream afterwards.
//   - Counting arrivals by subject: the server counts its subjects for each such request. The last sequence is enough.
//   - One broker for all its turns: its heap and its streams would carry over from turn to turn.
package bench
