// Package link holds the broker's connections to NATS, and records whether they are up, and on which
// of them the server and JetStream answer.
//
// The methods of a nats.Conn that return its state take a lock. A publish holds that lock while the socket accepts no
// data. The loop of a lane must not block for that time, so this package stores the states outside of the connections.
//
// # Invariants
//
//   - Online calls no method of a connection.
//   - JetStream requests go to a stream's leader, because a lagging replica may answer a direct get. The exception is a
//     read of timers where an old answer does no harm: see package timer/role.
//
// # Tried and rejected
//
// The connection handlers of nats.go. A connection has one handler of each kind, and the handlers belong to the program
// that made the connection.
package link
