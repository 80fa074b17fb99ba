// Package bench measures a broker from outside: how late, how fast, at what cost, and whether it keeps its promises
// meanwhile. It has the load, the accounting and the processes of "delaybroker bench", and test/rivals uses the same.
//
// # Who stands where
//
// It stands beside broker/inspect: it knows the contract (broker/message, levels), the marks of streams
// (broker/streams) and the JetStream API, and nothing of the engine. The engine knows nothing of it, and a broker
// that is measured is the command itself in a process of its own. The command parses, calls and prints.
//
//	delaybroker bench ── Run: marks, turns, waits, reads, reports
//	     │ stdin: orders, and the end      ▲ stdout: ready, how far
//	     ├── bench-part server    a nats-server, unless there is one at NATS_URL
//	     ├── bench-part broker    delaybroker serve          ┐ one of them at a time,
//	     ├── bench-part pipeline  the bare pipeline          ┘ and none for the scheduler
//	     └── bench-part load      publishes
//
// The load is a process of its own because a publisher in the process that measures, or that delays, shares its
// scheduler and its garbage collector. Each part ends when its stdin is closed: also after kill -9 of the run.
//
// # Sides
//
// All sides have the same server, in turns, so that what disturbs the machine disturbs all; with several rounds a ratio
// is that of two turns of one round. Each turn has new streams, and the broker a new process.
//
//   - Broker: delaybroker serve with the settings of the environment. A delay that is a plain duration is published to
//     its level, any other, and a time, to the intake.
//   - Scheduler: the server's own message scheduling (ADR-51), "Nats-Schedule: @at" on a subject for each message. Its
//     target has to be in the same stream.
//   - Pipeline: reads a stream in order, waits until the head is due, publishes with an id and the headers of a broker,
//     purges behind every 100 ms. It has no retries, no owner and no second delay: the least that any sidecar does, and
//     so what a broker can come near to. It has one stream, so with mixed delays its messages are due at once. With
//     ingest and pending it is a plain publish. It has no timers.
//
// # What is measured
//
// The payload says which message it is and when it is due. Lateness is the time at which the target's stream stored the
// message less that. Where plain subscribers are the target it is the time at which they had it. A broker's level
// begins to count when it has stored the message, a little after it was asked for; it says so in Delay-Due, and
// "promised" is by that.
//
// Lost is what was accepted and has not arrived 15 s after the last was due and the last came. Early is before the
// payload's time, or before Delay-Due. If the server is elsewhere, its clock is compared with ours first, and what is
// early by less than half a round trip is not called so; by Delay-Due, with both times by servers, there is no doubt to
// subtract. Twice are copies, which are allowed. One refused publish ends a run: what remains would be another load.
//
// # Timers
//
// The load sets timers, cancels some and moves others: a message of the load is such an entry or request, and its
// answer has to say that it was done. A set's answer has the sequence that the later messages expect. The cancelled
// timers have the last numbers. The ledger counts those that fire, from zero, so a cancelled timer that arrives is
// unknown. Timers that are moved have the first numbers. They are set for an hour later, and moved to the instant of
// all others.
//
// A broker works before the instant (it reads what becomes due) and after the last arrival (it deletes). So the CPU
// time for a firing is counted from two seconds before the instant until the processes are at rest: until they use less
// than 15 ms of CPU time in half a second. The wait for that ends half a minute after the last arrival, and with rounds
// before the next one.
//
// All series of a run have one cron, with a round at each multiple of its interval. They are set right after such an
// instant, since the server has no schedule that begins later. The broker says the number of a round, of the server's
// schedules it is the order of arrival. A round that was missed counts as lost.
//
// # What a run leaves
//
// Nothing. Its prefix is bench-xxxxxxxx, at random. A stream BENCH-XXXXXXXX-RUN with the prefix in its metadata is made
// first and removed last, and gets a message every five seconds. A later run that finds such a mark without a message
// for a minute, by the server's clock, removes the streams of that prefix: those that carry the mark of a run, and
// those that carry a broker's with this prefix. A prefix that only looks like one, without the mark, is somebody's.
//
// # Left out, and why
//
//   - A consumer at the target that measures as messages come: it would cost the server as much as the sidecar's reader
//     does, for every side alike, and so bring all ratios nearer to one. The stream is read afterwards.
//   - Counting arrivals by subject: the server counts its subjects for each such question. The last sequence says it.
//   - One broker for all its turns: its heap, and its streams, would remember the turn before.
package bench
