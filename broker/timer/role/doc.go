// Package role is the timer logic of a lane's worker: the progress of each firing (Alarm), the next step of each timer,
// and the stream that holds their entries (Stream). Package timer has their state machine, and package timer/service
// carries out requests.
//
// # An alarm
//
// A named timer is a message like any other, except at two points: before the message is sent, the leader must have
// stored the firing; and when it is delivered, the timer's entries are removed.
//
//	                 the body is in memory                     stored
//	set ─────────────▶ pending ── due ──▶ claim ── 10071 ──┐    ──▶ fired ──▶ … ──▶ settled ──▶ remove
//	marker ── a copy ──┘   ▲                               ▼
//	            └── other ─┴──────── examine ◀──────────── doubt
//
// The worker asks Alarm.Next before its own decisions. It takes the steps, and returns the answers: the alarm notes an
// answer (Claimed, AfterOutcome, Stream.Examined), and a function After… returns the next step. These functions change
// nothing but the alarm, and ask nothing.
//
// A round of a series is claimed only when the rounds before it are settled (Precede), and the claim is also the next
// round (Stream.Firing). So once the round is settled, its own entry is removed, and no outcome is recorded: see
// package timer.
//
// # Ahead
//
// A marker has no body. A second and a half before the timer is due, its entry is read from any replica, together with
// up to 255 others (ReadCopies). The worker uses only those facts of a copy that cannot change: see Copied. For the
// rest, and for missing copies, it asks the leader. The claim detects a change of the timer since the copy.
//
// # The stream
//
// In other lanes, delivered messages are purged. In the timers' stream, armed timers stay, so its lane keeps a separate
// cursor there (KeepCursor). A Sweep finds timers whose marker was lost with its level, or whose removal was lost. A
// pass of the sweep also reseals pending entries that have an earlier key, so that this key may be taken away, and
// counts the entries that are sealed with an unknown key.
//
// # Invariants
//
//   - An alarm fires only once its firing is stored, and in one place of a process (Stream.Take).
//   - An uncertain state is read again: an ambiguous answer leads to doubt, and only the last entry of the subject
//     resolves it.
//   - An unconditional publish does not affect a timer that has already fired (Stream.Look).
//   - Replicas are asked only for facts that a claim proves later, or that a removal may get wrong without harm: see
//     Copied and RemoveEntries. If they do not answer, only the leader is asked for a minute.
//   - Entries are removed from the oldest to the last. Each delete waits for the answer to the one before. The firings
//     of other generations stay.
//   - All rounds of a minute may be due at once, so each read that is saved counts. If this process has settled the
//     rounds before a round, it reads nothing (KnowsBefore); otherwise it reads them before the round is due. If a
//     round is read from the leader, one read returns its entry and proves that no entry is left before it
//     (LookAtRound). Then only that entry is removed. Entries that its marker would remove are left to the round
//     before.
//   - If a client may ask for the outcome of a timer, the outcome is stored before its entries are removed. If it
//     cannot be stored, they are removed all the same.
//   - A pass of the sweep takes about a hundredth of the time, and has a bounded number of alarms in memory.
//
// # Tried and rejected
//
// Keeping the messages, publishes and waits in this package: it then duplicated the worker, with a mailbox, memory, a
// lease and a stop. So it has no goroutine, and the worker carries out its steps. Keeping all this among the worker's
// own files: one in four references between them was for timers.
package role
