// Package link holds the broker's connections to NATS, and records whether they are up and whether JetStream answers.
//
// nats.go answers calls about a connection under a lock. A publish holds that lock while its socket accepts no data. A
// loop that made such a call would block for as long, so the states are stored outside of the connections.
//
// # Invariants
//
//   - While States are watched, their methods call no connection.
//   - Each request to JetStream goes to a stream's leader, because a lagging replica may answer a direct get. Only
//     timers are read by direct gets, on the connection for reading: see package timer/role.
//
// # Tried and rejected
//
// The connection handlers of nats.go. A connection has one of each kind, and they belong to the program.
package link
