package bench

import "errors"

var (
	// ErrBroken is returned if a message was lost or early. The measurements of such a run are worthless.
	ErrBroken = errors.New("a promise is broken")
	// ErrRefused is returned if the server refused a message or did not answer.
	ErrRefused = errors.New("not accepted")
	// ErrSlow is returned if messages were due before all of them were published.
	ErrSlow = errors.New("published too slowly")
	// ErrUnsupported is returned if a side does not support the scenario.
	ErrUnsupported = errors.New("not supported")
)
