// Package broker is a delay broker that a program embeds: New checks a Config, Run works until its context ends, Status
// and Answer report its state. The loop that moves messages is package engine. Nothing here runs for each message.
//
//	broker.go     makes the parts, runs them, and stops them in order
//	links.go      wakes the engine when a connection is back
//	leaser.go     makes the leaser, which decides which instance owns a lane
//	pauses.go     stops deliveries to paused targets
//	control.go    answers requests about timers and schedules
//	answer.go     answers operators, with status.go and remember.go
//	journal.go    stores the end of each message
package broker
