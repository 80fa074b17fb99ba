package broker

import (
	"errors"

	"delaybroker/broker/config"
	"delaybroker/broker/streams/provision"
)

// ErrGrace is returned by Run when the grace period ended before everything outstanding was acknowledged. Nothing is
// lost; what was outstanding may come twice, under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")

// The errors of parts that New and Run return too.
var (
	ErrConfig = config.ErrConfig
	ErrDrift  = provision.ErrDrift
	ErrSecret = provision.ErrSecret
)
