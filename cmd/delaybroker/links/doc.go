// Package links makes the connections of the program to NATS: four for a broker, and one for a command.
//
//	read      receives the lanes' messages
//	write     stores hops, retries and dead letters
//	deliver   publishes to the targets
//	control   sends requests to JetStream and to other instances
//
// A broker has four connections, its links, because the messages on one socket wait for each other: a large backlog, or
// a flood of one target, would delay hops and heartbeats. The four links may have four users, each with only the
// permissions that it needs.
//
// # Lost connections
//
// A link reconnects for ever, even if the server rejects its credentials, since a password rotation may be in progress.
// Before its first connection, a link reports rejected credentials as an error: see set.Await. A link detects a dead
// connection within seconds, instead of the client library's minutes, because each second adds to the lateness of all
// messages. The comments of the constants have the reasons for their values.
//
// A publish on a disconnected link fails immediately and is not buffered, except on the link read, on which the broker
// stores and delivers nothing. The broker decides when to send the message again. A buffer would send the message a
// second time.
package links
