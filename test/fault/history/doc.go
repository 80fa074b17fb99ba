// Package history records and judges the events of one run of the fault tests.
//
// A history is a list of events: every publish with its answer, every fault with its proof, the messages that core
// subscribers received, and the final contents of the target's stream on every server. The final contents decide
// whether a message for a stream was delivered. The core subscribers also receive the duplicates that the stream drops.
// A publish without an answer counts as unknown, not as failed: its message may arrive or not.
//
// The judgement is a pure function of the history, so a later version of the checker can judge a stored history again:
//
//	go run ./test/fault/check history.jsonl
//
// # Early messages
//
// Each delivered message has headers with the time of its acceptance and its due time. The checker does not trust these
// headers. The publisher's clock, which in these runs is also the servers' clock, bounds the time of acceptance. The
// due time must be the time of acceptance plus the delay, or the requested time if it is later than the acceptance, to
// the nanosecond. The target's timestamp must not be before the due time. A message for core subscribers has no such
// timestamp: it is early if a subscriber received it before the publish plus the delay.
package history
