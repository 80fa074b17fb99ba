package provision

import "errors"

var (
	// ErrDrift is returned when a stream is configured so that accepted messages would be lost. Correct the stream, or
	// move it aside.
	ErrDrift = errors.New("a stream cannot keep the promises")
	// ErrSecret is returned when other brokers seal what they write, with a secret that this one does not have. Give it
	// to this one.
	ErrSecret = errors.New("no secret")
)
