package broker

import (
	"delaybroker/broker/config"
	"delaybroker/broker/engine"
	"delaybroker/broker/streams/provision"
)

// Errors of other packages that New and Run return.
var (
	ErrConfig = config.ErrConfig
	ErrGrace  = engine.ErrGrace
	ErrDrift  = provision.ErrDrift
	ErrSecret = provision.ErrSecret
)
