package engine

import "errors"

// ErrGrace is returned by Run when the grace period ended before all publishes were acknowledged. No message is lost. A
// message without an acknowledgement may be delivered twice, under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")
