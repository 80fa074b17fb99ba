// Package acks publishes messages and matches the answers to the publishes.
//
// # Invariants
//
//   - A publish ends with exactly one final call of its Func, with an answer or an error.
//   - An answer counts only if its subject ends with the token of its publish, a random part of the reply subject. No
//     token can be computed from another.
//   - No goroutine waits for an answer, so a worker can have tens of thousands of publishes in flight.
//
// # Tried and rejected
//
// PublishAsync of nats.go: it handles only streams, accepts an answer of any sender as the stream's, and has no timeout
// by default.
package acks
