package broker

import "errors"

var (
	// ErrConfig is returned by New for a setting out of bounds, once for each. Correct the setting.
	ErrConfig = errors.New("configuration")
	// ErrDrift is returned by Run when a stream is configured so that accepted messages would be lost. Correct the
	// stream, or move it aside.
	ErrDrift = errors.New("a stream cannot keep the promises")
	// ErrSecret is returned by Run when other brokers seal what they write, with a secret that this one does not have. Give
	// it to this one.
	ErrSecret = errors.New("no secret")
	// ErrGrace is returned by Run when the grace period ended before everything outstanding was acknowledged. Nothing
	// is lost; what was outstanding may come twice, under one id.
	ErrGrace = errors.New("stopped before everything was acknowledged")
)
