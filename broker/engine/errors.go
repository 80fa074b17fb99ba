package engine

import "errors"

// ErrGrace is returned by Run when the grace period ended before everything outstanding was acknowledged. Nothing is
// lost; what was outstanding may come twice, under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")
