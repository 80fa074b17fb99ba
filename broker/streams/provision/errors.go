package provision

import "errors"

var (
	// ErrDrift is returned when accepted messages could be lost with the configuration of a stream. Correct the
	// configuration, or move the stream's messages to another stream.
	ErrDrift = errors.New("with the configuration of a stream, accepted messages could be lost")
	// ErrSecret is returned when other brokers seal their messages with a secret that this broker does not have. Configure
	// the same secret.
	ErrSecret = errors.New("no secret for the seals")
)
