package engine

import "errors"

// ErrGrace is returned by Run when the grace period ended before everything outstanding was acknowledged. No
// message is lost; an outstanding one may be delivered twice, under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")
