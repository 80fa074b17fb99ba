package engine

import "errors"

// ErrGrace is returned by Run when the grace period ended before all publishes were acknowledged, or when a lane could
// not be committed at the end. No message is lost. A message whose arrival is not committed may be delivered twice,
// under one id.
var ErrGrace = errors.New("stopped before everything was acknowledged")
