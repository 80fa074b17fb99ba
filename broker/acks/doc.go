// Package acks lets one connection have many publishes in flight, and reports the result of each.
//
// # Invariants
//
//   - A publish ends with exactly one final call of its function: with the answer, or with the reason why there is
//     none.
//   - An answer counts only under the token of its publish, a secret part of the reply subject. No token follows from
//     another.
//   - No goroutine waits for an answer, so a worker can have tens of thousands in flight.
//
// # Tried and rejected
//
// nats.go's PublishAsync would do for streams. But it has no call-back for success, takes every answer for an
// acknowledgement, and never gives up if no answer comes.
package acks
