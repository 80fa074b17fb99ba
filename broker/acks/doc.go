// Package acks publishes messages and matches the answers to the publishes.
//
// # Invariants
//
//   - A publish ends with exactly one final call of its Func, with an answer or an error.
//   - An answer counts only if its subject ends with the token of its publish, a random part of the reply subject. No
//     token can be computed from another.
//   - A publish waits for its own flush and its own timeout, and never for a result of another publish. A silence is
//     reported at most maxSilenceTimeout after the flush.
//   - No goroutine waits for an answer, so tens of thousands of publishes can be in flight.
//
// # Tried and rejected
//
// PublishAsync of nats.go: it ends at the first answer, also if a subscriber sent that answer and not a stream. It has
// no timeout by default.
package acks
