// Package link is the broker's connections to NATS, and what is known of them without asking: whether they are up, and
// whether JetStream answers.
//
// nats.go answers questions about a connection under a lock that a publish holds while its socket takes no data. A loop
// that asked would stand still for as long, so the states are kept beside the connections.
//
// # Invariants
//
//   - States never ask a connection once they are watched.
//   - Each question to JetStream goes to a stream's leader: a direct get may be answered by a replica that lags. Only
//     timers are read that way, on the link that reads: see package alarm.
//
// # What was tried and rejected
//
// The connection handlers of nats.go: a program has one of each, and they belong to it.
package link
