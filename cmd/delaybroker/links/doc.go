// Package links makes the connections of the program to NATS: the four of a broker, and the one of a command.
//
//	read      the lanes' messages
//	write     messages that the broker stores: hops, retries, dead letters
//	deliver   messages that it publishes to the targets
//	control   questions to JetStream and to other instances
//
// A broker has four, because one socket is a queue: a backlog that is read, or a target that floods, would be in front
// of a hop or of a heartbeat. They may also be four users, each with the rights that it needs.
//
// # Lost connections
//
// A link never gives up by itself: it reconnects for ever, and only the server can end it, by refusing the credentials
// twice. Then Dialer.Lost is called, and the program ends. A dead link is noticed within seconds and not within the
// minutes of the client library, because each second is lateness of all messages (see the constants).
//
// A publish on a link that is down is refused at once and not buffered. The broker decides itself when to send the
// message again; a buffer would send it a second time.
package links
