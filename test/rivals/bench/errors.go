package bench

import "errors"

var (
	// ErrBroken is returned if a message is lost or early, or if an unexpected message arrives. The measurements of
	// such a run are worthless.
	ErrBroken = errors.New("a promise is broken")
	// ErrRefused is returned if a published message is refused or gets no answer.
	ErrRefused = errors.New("a published message was not accepted")
	// ErrSlow is returned if the scenario needs all messages accepted before the first due time, and they were not.
	ErrSlow = errors.New("the load was published too slowly")
	// ErrUnsupported is returned if a side does not support the scenario.
	ErrUnsupported = errors.New("not supported")
)
