package bench

import "errors"

var (
	// ErrBroken is returned when a message was lost or early: the measurements of such a run are worthless.
	ErrBroken = errors.New("a promise is broken")
	// ErrRefused is returned when a server refused a message or did not answer.
	ErrRefused = errors.New("not accepted")
	// ErrSlow is returned when messages were due before all of them were published.
	ErrSlow = errors.New("published too slowly")
	// ErrCannot is returned when a side does not support the scenario.
	ErrCannot = errors.New("cannot do this")
)
