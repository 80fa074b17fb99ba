// Package link holds the broker's connections to NATS, and their states without asking them: whether they are up, and
// whether JetStream answers.
//
// nats.go answers calls about a connection under a lock that a publish holds while its socket accepts no data. A loop
// that made such a call would block for as long, so the states are stored beside the connections.
//
// # Invariants
//
//   - States never ask a connection once they are watched.
//   - Each request to JetStream goes to a stream's leader: a lagging replica may answer a direct get. Only timers are
//     read that way, on the link that reads: see package timer/role.
//
// # Tried and rejected
//
// The connection handlers of nats.go: a program has one of each, and they belong to the program.
package link
