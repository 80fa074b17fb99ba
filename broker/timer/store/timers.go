package store

import (
	"delaybroker/broker/lane"
	"delaybroker/broker/timer/change"
)

// Timers lists the named timers of a broker, and changes one or many. It is safe for concurrent use.
type Timers struct {
	change.Timers
	Scan lane.Scan // for List; only Conn, JetStream and APIPrefix are set
}
