package broker

import (
	"delaybroker/broker/config"
	"delaybroker/broker/engine"
	"delaybroker/broker/streams/provision"
)

// The errors of parts that New and Run return too.
var (
	ErrConfig = config.ErrConfig
	ErrGrace  = engine.ErrGrace
	ErrDrift  = provision.ErrDrift
	ErrSecret = provision.ErrSecret
)
