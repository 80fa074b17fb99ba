// Package acks publishes messages and matches the answers to them. One connection can have many publishes in flight.
//
// # Invariants
//
//   - A publish ends with exactly one final call of its function: with the answer, or with an error.
//   - An answer counts only if it names the token of its publish, a secret part of the reply subject. No token can be
//     computed from another.
//   - No goroutine waits for an answer, so a worker can have tens of thousands of publishes in flight.
//
// # Tried and rejected
//
// nats.go's PublishAsync handles only streams. It also has no callback for success, treats every answer as an
// acknowledgement, and has no timeout.
package acks
