package engine

import "errors"

// ErrGrace is returned by Run when the grace period ended before all publishes were acknowledged and the entries of all
// delivered timers were removed, or when a lane could not make its final commit, because its lease or its consumer was
// in doubt. No message is lost. A message whose arrival is not committed may be delivered twice, under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")
