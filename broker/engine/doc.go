// Package engine moves delayed messages from lane to lane and, when they are due, to their targets. Package broker
// supplies the connections, the streams, and the lease of this instance, and reports the engine's state.
//
// # Terms
//
// broker/message/PROTOCOL.md defines lane, level, active and hop.
//
//	intake    the lane of delay 0, for delays that match no level
//	timers    the lane of named timers, which clients can replace and cancel; see package timer
//	marker    the placeholder of a timer in a level, without the timer's body
//	entry     a message in DELAY_TIMERS, such as a set, or a firing: the record that a due timer fires
//	arrived   a message has arrived when another stream has stored it, or its target has it
//	flight    a message in memory, from its read until it has arrived
//	step      the next action on a flight: hold, hop, fire, retry, …
//	alarm     the state of a named timer in memory; see package timer/role
//	settled   of a named timer: its message needs no further delivery, and its entries in DELAY_TIMERS are to be removed
//	closing   of a pause: due messages wait in memory, for seconds, until the pause is over; see package pause
//	park      to store a due message in the lane of a pause; see package pause
//	wheel     the timer wheel on which the messages in memory wait; see package wheel
//	horizon   the remaining time below which a message waits on the wheel
//	cursor    the sequence up to which all messages have arrived; a commit purges the lane up to that sequence
//	run       consecutive sets of one debounced timer, of which only the last fires; see package timer
//	lease     the right to work all lanes, which the active instance has; see package lease
//	instance  a running broker; a replica is always a copy of a stream
//	due       the absolute time of delivery, fixed when the first stream stored the message
//	pass      one iteration of a lane's loop; a sweep pass is a scan of the timers' stream
//	ladder    the levels of a broker, from the shortest to the longest
//	bucket    the messages that share one rate: those to one target, or with one Delay-Rate-Key
//
// # The way of one message
//
//	delay.30m.orders.x          stored by JetStream: accepted
//	  │
//	  │   worker.go             runs one loop for each lane; all answers come back through the loop's mailbox
//	  ▼
//	reading.go                  takes messages in order from lane/…; message/… and levels/… parse the request
//	  │
//	  ├─▶ backlog.go            after an outage: waits until all messages that are due earlier have been read
//	  ▼
//	decide.go                   decides the next step, as a pure function of the plan and the moment (step.go), and of
//	  │                         the flight (flight.go)
//	  ├─▶ parking.go            if the target of a due message is paused (pause/…), the message is parked
//	  ▼
//	apply.go                    carries out the step:
//	  ├─ hold ─▶ flights.go     on the wheel/… until the next decision; waiting.go packs messages with long waits
//	  ├─ hop, retry, dead ────▶ store.go publishes through acks/… into another lane, under our seal
//	  └─ fire ────────────────▶ fire.go delivers to orders.x through deliver/…, which limits rates and open deliveries
//	                              │
//	decide_store.go            ◀──┤    jsapi/… reads the answer: the message has arrived, or these two files decide
//	decide_delivery.go         ◀──┘    the next step
//	  │
//	  ▼ arrived
//	commit.go, committer.go     move the cursor, check the stream (lane/history.go), and purge up to the cursor, if
//	                            safeToCommit and carryOut permit it. The purge itself is in kind.go.
//
// The picture leaves out failures, and these files:
//
//	leader/…, sample.go                 the leader's time
//	slack.go                            the time of the loop's next wake-up
//	budget.go                           the memory of each lane
//	report.go, stats/…                  figures for operators
//	record.go                           the journal's record of each message
//	hand_over.go                        messages without an answer when the instance stops
//
// # Named timers
//
// Package timer/role decides about a named timer until its firing is stored, and again after its delivery. In between,
// the timer is a message like any other. timers.go holds the timers of a lane, read_timers.go reads their bodies before
// they are due, and fire_timer.go carries out their steps. While no due message waits, settle_timer.go removes the
// entries of settled timers. Tenants take turns at reads and removals (turns.go). timers_lane.go is the lane of the
// entries. During a burst of firings, the worker does not read this lane: see burstFirings.
//
// # Decisions
//
// This table lists where each decision about a message is made. apply.go, store.go and fire.go only record facts for
// the decisions, such as a refusal or a silence.
//
//	a message is read or due     decide.go: nextStep
//	a due message may be sent    parking.go: fireOrPark
//	a level refuses a hop        decide_store.go: afterRefusal; decide.go: shorterLevel
//	a stream is full (10077)     jsapi/reply.go classifies it: StreamFull, or LimitReached for an account or a server
//	a target does not answer     deliver/evidence.go: whether the message counts as delivered;
//	                             decide_delivery.go: judgeSilence
//	a seal has an unknown key    streams/provision/keys.go
//	a named timer                timer/role/next.go; after an answer, timer/role/event.go
//	a timer's next round         timer/role/stream.go: firingEntry, by timer/timetable/rounds.go: Decide
//	several lanes have backlogs  watermark.go: whose messages are sent first
//	two clocks are compared      leader/doc.go lists the places
//
// When a broker dies, the next active instance continues from the streams. A message that was sent, and whose
// arrival was not committed, is sent again under its id. timer/doc.go lists the steps of a named timer between which
// this can happen, with a test for each.
//
// # Kinds of lanes
//
// The loop is the same for all lanes. A kind of lane is a type that implements laneKind (kind.go): plainLane for the
// intake and the levels, retryLane, timersLane (timers_lane.go), pausedLane (parking.go). serve.go chooses the kind.
//
// The lanes of pauses are parts of one stream. After a resume, the active instance reads the lane of the pause until
// the lane is empty: pauses.go. Several lanes drain at the same time, each with a loop of its own.
//
// # Invariants
//
//   - A message is removed from a lane only after the next stream, or the target, has acknowledged it. Core subscribers
//     do not acknowledge. For them, a message counts as delivered if the server has taken it and no refusal comes (see
//     package deliver). The marker of a timer is also removed when the timer is replaced, cancelled or settled. In all
//     other cases the message stays in its lane.
//   - A message hops from a level to another level only when the delay of its level, less the lookahead of 50 ms, has
//     passed. The lookahead is far below the smallest level, so no message circles. A message that is due before that,
//     because the intake was crowded, fires when it is due.
//   - The due time travels with the message. Any ladder may continue a chain of hops that another ladder began, so
//     levels may be added and removed.
//   - A message fires only with a proof that the clock of the lane's leader has reached the due time: see leader.Clock.
//     A relative due time counts from a timestamp by the leader of the first stream. The clocks of leaders are assumed
//     to agree, as NTP keeps them.
//   - A commit removes only messages that have arrived, and only from the same incarnation of the stream that they were
//     read from (its history). Before a purge (plainLane.commit and pausedLane.commit, which only carryOut calls), the
//     lease must be held and the consumer alive (safeToCommit), and the leader must have shown that history within
//     confirmedFor (carryOut, lane.Judge). The reader must not have skipped a message (package lane). The lane of
//     timers is not purged: its commit stores a cursor.
//   - An instance that has applied a pause sends no message to the paused targets. parking.go checks this for each due
//     message. The deliverer checks the pauses once more, under its lock. It returns messages that were decided before
//     the pause, and the worker decides about them again.
//   - The active instance sends all messages of a bucket that has a rate, and reserves a send time for each.
//     PROTOCOL.md lists the exceptions under "Limits".
//   - An attempt counts when a retry lane, or the stream of dead letters, has stored the message with the new number of
//     attempts. If that stream refuses the message, the attempt does not count. A target's stream that is at a limit of
//     its own (10077) has refused. A limit of the account or the server is no refusal by the target. A stream that
//     should acknowledge a delivery, and does not answer, has not refused; three such silences in a row count as one
//     refusal. A service that does not reply in time has refused.
//   - Every hop of a message has its own id, <Delay-Id>/<n>. The answer "duplicate" is believed only after the worker
//     has read the stored message, and only if that message is ours. Otherwise the message is published under an
//     unguessable id.
//   - A message below delaysys or delaydead counts only with our seal (message.Keys). An answer counts only if its
//     subject has the token of its publish (package acks). An acknowledgement by a lane counts only if it names the
//     lane's stream.
//   - A worker reads, fires and commits only while its lease is held. It checks the lease before each message and each
//     commit. After a lease is lost, the next active instance repeats unfinished work, under the same ids.
//   - No message waits for the journal (package journal). No decision depends on the journal or on config.Config.Ended:
//     record.go.
//   - The number of messages that a worker may hold bounds every queue. No loop of a lane waits for an answer. Only
//     four things may block a loop: a publish into a connection that accepts no more bytes, for at most the write
//     timeout of the connection (5 s in cmd/delaybroker/links); a log whose reader has stopped; config.Config.Ended,
//     which must return immediately; and the short locks that lanes share. Of these locks, that of the deliverer is
//     held longest, while Halt scans the waiting deliveries. After the loop has ended, drain waits for answers, for at
//     most three quarters of the grace period. A cooldown (slack.go) blocks nothing: the loop sleeps for at most the
//     slack.
//   - While a message stops the cursor, later messages arrive. Commits remove these before the cursor moves, and at
//     most maxOutOfOrder of them may wait for that (committer.go). So a crash repeats little, and a stop removes them
//     in time.
//
// # Tried and rejected
//
// A work-queue consumer with explicit acknowledgements needs four Raft operations for a message instead of one, and
// server memory for each message in flight. With NakWithDelay, 100,000 messages missed their due times by seconds. A
// wake-up at a fixed tick costs a few per cent of a core, and makes messages late by half a tick on average. So the
// loop sleeps until the next due time.
package engine
