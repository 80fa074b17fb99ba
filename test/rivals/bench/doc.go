// Package bench measures the lateness, the throughput and the cost of a broker in another process. It also checks the
// broker's promises under the load. The command test/rivals/compare and the benchmarks of test/rivals use it.
//
// # Dependencies
//
// Like broker/inspect, package bench depends on the protocol (broker/message, levels), on the metadata of streams
// (broker/streams) and on the JetStream API. It does not depend on the engine. The command parses the flags, calls Run
// and prints the report.
//
//	compare ── Run: run marker, turns, waits, ledgers, report
//	     │ stdin: task, then EOF           ▲ stdout: ready, progress, result
//	     ├── part server    a nats-server, unless NATS_URL names one
//	     ├── part broker    delaybroker serve          ┐ the sidecar: at most one of the two runs,
//	     ├── part pipeline  the bare pipeline          ┘ and neither for the scheduler
//	     └── part load      publishes
//
// The load has its own process: a publisher inside the run or the sidecar would share the Go scheduler and the garbage
// collector of that process. Each part ends when its stdin is closed, even after a kill -9 of the run.
//
// # Sides
//
// A side is one of the compared systems. The sides use the same server, one after the other. A turn is the measurement
// of one side. A round is one turn of each side. The ratio of a side to the broker compares two turns of the same
// round, because a disturbance of the machine probably affects both turns. Each turn has new streams and a new sidecar.
//
//   - Broker: delaybroker serve with the settings of the environment. For a plain duration, such as 5m, the load
//     publishes on <prefix>.5m.<target>; for another delay, on <prefix>in.<delay>.<target>; and for a due time, on
//     <prefix>at.<time>.<target>.
//   - Scheduler: the server's own message scheduling (ADR-51). Each message has the header "Nats-Schedule: @at <time>",
//     or a cron in the scenario rounds, and its own subject. A schedule and its target must be in the same stream.
//   - Pipeline: a process that reads one stream in order. It waits until each message is due, publishes the message
//     with an id and the headers of a broker, and purges delivered messages every 100 ms. The pipeline has no retries,
//     no owner, no hops and no timers. Any broker has at least this work, so no broker can have a better result than
//     the pipeline. The one stream suffices only for one constant delay. For other delays, the load of this side makes
//     each message due immediately. In the scenarios ingest and pending, the side pipeline is a plain publish, without
//     a sidecar.
//
// # Measurements
//
// The payload contains the number of the turn, the number of the message, and the requested due time of the message.
// Lateness is the time at which the target's stream stored the message, minus that due time. For plain subscribers, it
// is the time of receipt minus the due time. A delay in a level begins when the broker's stream has stored the message,
// a little after the publish. The broker writes the resulting due time into the header Delay-Due. The promised lateness
// is the lateness relative to Delay-Due.
//
// An accepted message is lost if it has not arrived 15 s after the last due time or 15 s after the last arrival,
// whichever is later. A message is early if it arrives before its requested time, or before Delay-Due. If the run did
// not start the server, the run first compares the server's clock with the local clock. In this case, an arrival counts
// as early only if it is more than half a round trip before the requested time. Delay-Due and the time of storage are
// both times of servers, so their comparison has no such margin. The time of receipt is a local time, so its comparison
// with Delay-Due has the margin too. The count "twice" is the number of duplicates, which are allowed. After a refused
// publish, the loads of the sides would differ, so the refusal ends the run.
//
// # Timers
//
// The load sets timers, cancels some and moves others. For a broker, the load publishes on the subject of the timer, or
// sends a request to the broker, and the answer must confirm the change. The answer to a set contains the sequence that
// a later move or cancel expects. The cancelled timers have the last numbers. These numbers are not in the ledger, so
// the firing of a cancelled timer counts as unknown. The moved timers have the first numbers. The load sets them to a
// due time an hour later, and then moves them to the due time of the other timers.
//
// A broker reads the timers into memory before the due time, and deletes them after the last arrival. So the run
// counts the CPU time from two seconds before the due time until the processes are idle. Idle processes use less than
// 15 ms of CPU time in half a second. The run waits for idle processes for at most half a minute after the last
// arrival. In the scenario rounds, it waits at most until two seconds before the next round.
//
// In the scenario rounds, a round of a timer is one firing of a recurring timer. All recurring timers of a run have the
// same cron expression, with a round at each multiple of the interval. The first round is at the next multiple after
// the set, so the load sets the timers right after a multiple. A message of a broker contains the number of the round.
// A message of the server's scheduler does not, so the run numbers the messages of each timer in the order of their
// arrival. A missed round counts as lost.
//
// # Cleanup
//
// A run removes its streams. It chooses a random prefix bench-xxxxxxxx. Its run marker is the stream BENCH-XXXXXXXX-RUN
// with the prefix in the metadata. The run creates the marker first and removes it last. Every five seconds, it
// publishes a heartbeat to the marker. A run is dead if its marker has no heartbeat in the last minute by the server's
// clock. A later run removes all streams with the prefix of the dead run in their metadata. No run removes a stream
// with other metadata, even if its name begins with such a prefix.
//
// # Tried and rejected
//
//   - A consumer that measures at the target during the run. It would cost the server as much as the sidecar's reader,
//     for each side, so all ratios would be nearer to one. So the run reads the target's stream at the end.
//   - Asking for the number of messages by subject, to count the arrivals: the server would count the messages of each
//     subject. So the run asks for the last sequence of the stream.
//   - One broker process for all turns. The heap and the streams of one turn would affect the next turn.
package bench
