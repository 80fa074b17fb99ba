package provision

import "errors"

var (
	// ErrDrift is returned when a stream has a fatal streams.Drift. Correct the stream's configuration, or move its
	// messages to another stream.
	ErrDrift = errors.New("with the configuration of a stream, the broker cannot keep its promises")
	// ErrSecret is returned when the streams keep no secret and none is configured. Configure the secret of the other
	// brokers.
	ErrSecret = errors.New("no secret for the seals")
)
