package engine

import "errors"

// ErrGrace is returned by Run when the grace period ended before all publishes were acknowledged and the entries of all
// delivered timers were removed, or when a lane could not make its final commit, because its lease or its consumer was
// in doubt. No message is lost. A message whose arrival is not committed may be delivered twice, under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")

// errSlowConfirmation is returned by a commit when each answer that would confirm the history of the stream came too
// late to prove it.
var errSlowConfirmation = errors.New("the server answers too slowly to prove that the stream was not replaced")
