// Package history records the events of one run of the fault suite, and judges them.
//
// A history is a list of events: every publish with its answer, every fault with the proof that it happened, what core
// subscribers saw, and what the target's stream holds on every server when all is quiet again. The last is the truth;
// the live consumers are witnesses of copies only. A publish that was not answered is unknown, never failed: it may
// have been stored, and then it must be delivered like any other.
//
// The judgement is a pure function of the history, so a history that was written to a file can be judged again, by a
// later checker too:
//
//	go run ./test/fault/check history.jsonl
//
// # What counts as early
//
// The broker says of each message when it was accepted and when it is due. Neither is believed: the publisher's own
// clock, which is the servers' in these runs, brackets the acceptance, and due must be that plus the delay to the
// nanosecond. The target's timestamp must not be before either.
package history
