// Package role is what the worker of a lane knows of named timers: how far the firing of each has come (Alarm), the
// next step of each, and the stream that they stand in (Stream). Package timer has their state machine, and package
// timer/service carries out what people ask of them.
//
// # An alarm
//
// A named timer is a message as any other, except at two points: before it goes out, the leader must have stored that
// it fires; and when it has arrived, its entries are removed.
//
//	                 the body is in memory                     stored
//	set ─────────────▶ pending ── due ──▶ claim ── 10071 ──┐    ──▶ fired ──▶ … ──▶ settled ──▶ remove
//	marker ── a copy ──┘   ▲                               ▼
//	            └── other ─┴──────── examine ◀──────────── doubt
//
// The worker asks Alarm.Next before its own decisions. It takes the steps, and gives the answers back: an answer is
// noted in the alarm (Claimed, AfterOutcome, Stream.Examined), and After… says what comes next. These functions change
// nothing besides the alarm, and ask nothing.
//
// A round of a series is claimed only when those before are settled (Precede), and what is stored is the next round,
// too (Stream.Firing). So once it is settled, its own entry is removed, and nothing is told: see package timer.
//
// # Ahead
//
// A marker has no body. A second and a half before the timer is due, its entry is read from any replica, together with
// up to 255 others (ReadCopies). Of a copy counts only what stays true: see Copied. All else, and what is missing, is
// left to the leader. The claim finds out whether the timer was changed since.
//
// # The stream
//
// In other lanes, what has arrived is purged. What is armed stays in the stream of timers, so its lane keeps a cursor
// of its own there (KeepCursor), and a Sweep finds what was lost besides the stream: a marker with its level, or a
// removal. A pass of the sweep also stores anew what is pending under an earlier key, which may be taken away, and
// counts what is sealed with an unknown key.
//
// # Invariants
//
//   - An alarm fires only once its firing is stored, and in one place of a process (Stream.Take).
//   - What is not certain is looked at: an answer that may mean two things leads to doubt, and out of doubt leads only
//     the last entry of the subject.
//   - An unconditional publish does not affect a timer that has already fired (Stream.Look).
//   - Replicas are asked only for what a claim proves later, or what a removal may find wrong without harm: see Copied
//     and RemoveEntries. If they do not answer, only the leader is asked for a minute.
//   - Entries are removed from the oldest to the last, each after the answer for the one before; the firings of others
//     stay.
//   - All rounds of a minute may be due at once, so each question less counts. Where this process has settled those
//     before a round, it knows that (KnowsBefore); otherwise it asks before the round is due. Where a round is read
//     from the leader, one question tells what its entry says and that nothing is left before it (LookAtRound). Then
//     the entry goes alone. What its marker would remove is left to the round before.
//   - Where somebody may ask what became of a timer, that is stored before its entries are removed. If it cannot be,
//     they are removed all the same.
//   - A pass of the sweep takes about a hundredth of the time, and has a bounded number of alarms in memory.
//
// # What was tried and rejected
//
// That the package itself keeps the messages, publishes and waits for answers: then it had its own copy of everything
// that a worker is: a mailbox, memory, a lease, a stop. So it has no goroutine, and the worker carries out its steps.
// To keep all this among the worker's own files: one in four references between them was for timers.
package role
