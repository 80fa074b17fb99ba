// Package broker is a delay broker that a program embeds. New checks a Config. Run moves messages until its context
// ends. Status and Answer report the state. Package engine has the loop that moves messages. This package makes,
// connects and stops the broker's parts.
//
// A lane is a stream of the broker in which messages wait, such as a level, the intake or the stream of timers. The
// other terms of the protocol are in PROTOCOL.md of package message.
//
//	broker.go     makes the parts, runs them, and stops them in order
//	links.go      wakes the engine after an outage of a connection, and checks consumers after one of JetStream
//	leaser.go     makes the leaser, which decides which instance is active
//	pauses.go     stops deliveries to paused targets
//	control.go    answers requests about timers and schedules
//	answer.go     answers queries of operators, with status.go and figures.go
//	journal.go    starts the journal, which records the end of each message
package broker
