package bench

import "errors"

var (
	// ErrBroken is returned when a message was lost or early: the figures of such a run are worth nothing.
	ErrBroken = errors.New("a promise is broken")
	// ErrRefused is returned when a server took no message, or said nothing.
	ErrRefused = errors.New("not accepted")
	// ErrSlow is returned when messages were due before all of them were published.
	ErrSlow = errors.New("published too slowly")
	// ErrCannot is returned when a side has no such thing.
	ErrCannot = errors.New("cannot do this")
)
