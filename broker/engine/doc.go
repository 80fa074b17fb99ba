// Package engine moves delayed messages from lane to lane and, when they are due, to their targets. Package broker
// gives it connections, an owner for each lane and the streams, and reports its state.
//
// # Terms
//
// broker/message/PROTOCOL.md defines lane, level, owner and hop.
//
//	intake    the lane of delay 0, for delays that are not those of a level
//	timers    the lane of named timers, which can be replaced and cancelled; see package timer
//	marker    the placeholder of a timer in a level, without its body
//	flight    a message in memory, from being read to having arrived elsewhere
//	step      the next action on a flight: hold, hop, fire, retry, …
//	park      to store a message that is due in the lane of a pause; see package pause
//	horizon   the remaining time below which a message waits on the wheel
//	cursor    the sequence below which all messages have arrived elsewhere; a commit is a purge up to it
//	lease     the ownership of a lane; see package lease
//	instance  a running broker; a replica is always a copy of a stream
//	due       the absolute time of delivery, fixed when the first stream stored the message
//
// # The walk of one message
//
//	delay.30m.orders.x          stored by JetStream: accepted
//	  │
//	  │   worker.go             one loop for each lane; all answers come back through its mailbox
//	  ▼
//	reading.go                  lane/… hands messages over in order; message/… and levels/… read the request
//	  │
//	  ├─▶ backlog.go            after an outage: wait until all earlier messages have been read
//	  ▼
//	decide.go                   the next step, a pure function of the lane's plan, the moment and the flight.go;
//	  │  parking.go             a message that is due: if its target is paused (pause/…), it is parked, as by a hop
//	  ▼
//	settle.go                   carries out the step:
//	  ├─ hold ─▶ flights.go     on the wheel/… until the next decision; waiting.go packs messages with long waits
//	  ├─ hop, retry, dead ────▶ acks/… publishes into another lane, under our seal
//	  └─ fire ────────────────▶ deliver/… publishes to orders.x, at its rate and its group's share
//	                              │
//	decide.go ◀── the answer ─────┘    jsapi/… reads it: arrived, or the next step
//	  │
//	  ▼ arrived
//	commit.go, committer.go     move the cursor, look at the stream (link/…), purge up to the cursor. When that is
//	                            safe: safeToCommit and carryOut. What a kind of lane removes: kind.go.
//
//	The time: leader/…, look.go; slack.go returns when the loop wakes up. The memory for reading: budget.go.
//	Figures for operators: report.go, overdue.go, stats/….
//	The end of each message: record.go.
//
// The picture leaves out failures.
//
// # Named timers
//
// Package timer/role decides about a named timer until its firing is stored, and again when it is settled. In between
// it is a message as any other. timers.go holds the timers of a lane, read_timers.go reads their bodies ahead,
// fire_timer.go carries out their steps, and settle_timer.go removes their entries, once no due message waits.
// timers_lane.go is the lane of their entries.
//
// # Who decides
//
// decide.go decides the next step of a message. settle.go notes the facts for this: a refusal, a silence, a level that
// refused. deliver/evidence.go judges a target's answer.
//
//	a level refuses a hop        decide.go: afterRefusal, and smaller, which names the level below
//	a stream is full (10077)     jsapi/reply.go classifies it: StreamFull, and LimitReached for an account or a server
//	a target does not answer     deliver/evidence.go: whether that is a delivery; decide.go: judgeSilence
//	a seal cannot be judged      streams/provision/keys.go
//	a named timer                timer/role/decide.go
//	a timer's next round         timer/role/stream.go: Firing, by timer/timetable/rounds.go: Decide
//	backlogs of several lanes    watermark.go brings them into one order
//	two clocks meet              leader/doc.go lists the places
//
// When a broker dies, its lanes' next owners continue from the streams. A message that was sent, and whose arrival was
// not committed, is sent again under its id. For a named timer, timer/doc.go lists the steps between which this can
// happen, with a test for each.
//
// # Kinds of lanes
//
// The loop is the same for all lanes. A kind of lane is a type that implements laneKind (kind.go): plainLane for the
// intake and the levels, retryLane, timersLane (timers_lane.go), pausedLane (parking.go). serve.go chooses it, and no
// other place in the loop compares kinds.
//
// The lanes of pauses are parts of one stream. The stream's owner reads a lane only while it drains: pauses.go.
//
// # Invariants
//
//   - A message is removed from a lane only after the stream or target that it went to has acknowledged it. Core
//     subscribers do not answer: there, silence counts after the server has taken the message (see package deliver).
//     In all other cases the message stays.
//   - A message is moved on from a level only after the level's delay, less a lookahead that is far below the smallest
//     level. So hops are as few as the ladder allows, and no message circles. A message that is due earlier, because
//     the intake was crowded, fires when it is due.
//   - The due time travels with the message. Any ladder may continue a chain of hops that another ladder began, so
//     levels may come and go.
//   - A message fires only with a proof that the clock of the lane's leader has reached the due time: see leader.Clock.
//     The due time was stamped by the leader of the first stream. Leaders' clocks are taken to agree, as NTP keeps
//     them.
//   - A commit removes messages that have arrived, and only of the history that they were read from. Before it purges
//     (laneKind.commit), the lease must be held and the consumer alive (safeToCommit), and the leader must have shown
//     that history within confirmedFor (carryOut, lane.Judge). The lane of timers is not purged: its commit stores a
//     cursor.
//   - No message is sent to a paused target. decide.go checks this for each message when it is due, and the deliverer
//     once more, under its lock: it gives back messages that were decided before the pause, to be decided again.
//   - One instance sends all messages that a rate counts together, at turns that it gives: see rates.go.
//   - An attempt counts when it is stored: a message that no lane takes stays as it was. A target's stream that is at a
//     limit of its own (10077) has refused. A limit of the account or the server counts as no refusal by the target. A
//     stream that should acknowledge a delivery and is silent has not refused it; three such silences count as one
//     refusal. A service that does not reply in time has refused.
//   - Every publish of ours into a lane has its own id, <Delay-Id>/<n>. The answer "duplicate" is believed only after
//     the stored message was read, and is ours. If it is not, the message goes out under an unguessable id.
//   - A message below delaysys or delaydead is believed only with our seal (message.Keys), an answer only under the
//     token of its publish (package acks), and an acknowledgement of a lane only with that lane's name.
//   - A worker reads, fires and commits only while its lease is held, and checks it before each. The next owner repeats
//     unfinished work after a lease is lost, under the same ids.
//   - No message waits for the journal (package journal) or for config.Config.Ended, and no decision depends on them:
//     record.go.
//   - No loop waits for an answer, and every queue is bounded by the number of messages that its worker may hold. Three
//     things may block a loop: a publish into a connection that takes no more bytes, for the write timeout of the
//     connection (cmd/delaybroker/links), a log that nobody reads, and the short locks that lanes share.
//
// # Tried and rejected
//
// A work-queue consumer with explicit acknowledgements needs four Raft operations for a message instead of one, and
// server memory for each message held. Parking messages with NakWithDelay was seconds off at 100,000 messages. Waking
// up at a fixed tick costs a few per cent of a core and half a tick of lateness: the loop sleeps until the next due
// time.
package engine
