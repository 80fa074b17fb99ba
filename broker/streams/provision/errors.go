package provision

import "errors"

var (
	// ErrDrift is returned when the configuration of a stream would lose accepted messages. Correct the stream, or move it
	// aside.
	ErrDrift = errors.New("a stream cannot keep the promises")
	// ErrSecret is returned when other brokers seal their messages with a secret that this broker does not have. Configure
	// the same secret.
	ErrSecret = errors.New("no secret")
)
