package provision

import "errors"

var (
	// ErrDrift is returned when accepted messages could be lost with the configuration of a stream. Correct the
	// configuration, or move the stream's messages to another stream.
	ErrDrift = errors.New("with the configuration of a stream, accepted messages could be lost")
	// ErrSecret is returned when the messages are sealed and this broker has no secret at all. Configure the secret of the
	// other brokers.
	ErrSecret = errors.New("no secret for the seals")
)
