// Package role is the timer logic of a lane's worker: the progress of each firing (Alarm), the next step of each timer
// (Step), and the stream of the entries (Stream). Package timer describes entries, costs, invariants and crashes.
//
// # An alarm
//
// A named timer is a message like any other, with two exceptions. Before the message is sent, the leader must have
// stored the firing. After the message is delivered, the timer's entries are removed.
//
//	                 the body is in memory              the firing is stored
//	set ─────────────▶ pending ── due ──▶ claim ── 10071 ──┐    ──▶ fired ──▶ … ──▶ settled ──▶ remove
//	marker ── a copy ──┘   ▲                               ▼
//	            └── other ─┴──────── examine ◀──────────── doubt
//
// The worker calls Alarm.Next before its own decisions, and carries out the returned steps. It passes each answer to a
// function of this package (AfterClaim, AfterOutcome, AfterRemoval, Copied, Examined), which returns the next step.
// These functions send no request to NATS.
//
// # The stream
//
// In other lanes, a commit purges the messages that have arrived. In the timers' stream, the entries of pending timers
// stay. So a commit of the timers' lane stores a cursor in this stream (StoreCursor). A pass of the Sweep finds timers
// whose marker was lost with its level, and entries whose removal was lost. The pass also reseals pending entries that
// have an earlier key, so that the operator can remove this key. It counts the entries that are sealed with an unknown
// key.
//
// # Reads
//
//   - A marker has no body. Up to three seconds before the timer is due, its entry is read from any replica, together
//     with the entries of up to 255 other timers (ReadCopies). If memory is short, the entry is read when the timer is
//     due.
//   - The worker asks replicas only where an old answer does no harm: see Copied and RemoveEntries. During a backoff
//     after a request without an answer, it reads due timers from the leader. A longer first backoff was tried: when
//     100,000 rounds were due at the same time, a busy server answered too late, and 60,000 reads from the leader made
//     the server busier.
//   - After an ambiguous answer, the state is in doubt. Only a read from the leader ends the doubt.
//   - The rounds of many series may be due at the same minute, so the worker saves reads. If this process has settled
//     the earlier rounds, the worker does not read them (KnowsEarlierRounds). Otherwise, it reads them before the round
//     is due. If the worker reads a round from the leader, one read returns the round's entry and usually proves that
//     no earlier entry is left (ReadRoundState). Then only that entry is removed. When a level has stored the marker of
//     the next round, the entry of a fired round stays until that round is settled.
//
// # Tried and rejected
//
// A package that holds the messages, publishes, and waits for answers: it duplicated the worker's mailbox, memory,
// lease and stop. This package has no goroutine, and the worker carries out its steps.
//
// This logic among the worker's own files: one in four references between those files was for timers.
package role
