// Package timer is the state machine of named timers, without NATS: what the entry that stands on a timer's subject
// means for a firing that wants to be decided, how far the timers' stream has been read, and who in this process is at
// which firing. Package message reads and writes the entries themselves.
//
// # A key is a subject, its last entry is its state
//
// DELAY_TIMERS keeps one message for each subject delaytimer.<key>.<target…>. The server keeps it so: storing an entry
// removes the one before it in the same step, on every replica alike. The sequence of a set is its generation.
//
//	                    the leader decides in one order
//	set g ──┬─▶ fired g ──▶ (delivered, in a retry lane, or dead) ──▶ over, or nothing
//	        ├─▶ cancel
//	        └─▶ set h     moved, or replaced
//
// Every verdict is one publish that expects generation g to be the last entry of its subject. So of fire, cancel, move
// and replace exactly one wins, whoever publishes it, and a client with nothing but NATS gets exact answers whether the
// broker is up or down.
//
// # Invariants
//
//   - Nothing is delivered before the leader has stored the firing. An acknowledged cancel that expects g is final.
//   - The firing has the body with it. Whoever finds a firing whose instance is gone delivers it from there.
//   - An answer that did not come, or that can mean two things, decides nothing: the leader is asked for the last entry
//     (Judge).
//   - A generation is gone for good: sequences only rise. So nothing comes back when entries vanish.
//   - The cursor is an optimisation, the stream is the truth. Whatever is lost besides the stream makes a timer late,
//     and never loses it: the sweep finds what is overdue.
//
// # What was tried and rejected
//
// A log for each key, in which the entry behind a generation is its verdict: to remove in the right order needs an
// answer for each step, and two pipelined deletes revived cancelled timers after a kill of the server (2 of 976). A
// time to live on a verdict revives what it cancelled. An atomic batch of record and tombstone is right and slow: 157 a
// second. Deletes as verdicts: with three replicas, a delete of N and a publish that expects N both succeeded in 2,314
// of 4,000 races. Bodies in markers: a timer that is reset at every keystroke leaves a copy of its body in the levels
// each time.
package timer
