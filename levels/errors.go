package levels

import "errors"

var (
	// ErrDuration is returned by [ParseDuration] for a string that is not a duration.
	ErrDuration = errors.New("bad duration")

	// ErrLadder is returned by [Parse] for a spec that is not a ladder. The error's text has one line for each problem.
	ErrLadder = errors.New("bad ladder")
)
