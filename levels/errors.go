package levels

import "errors"

var (
	// ErrDuration is returned when a string is not a duration as [ParseDuration] reads it. The error's text names the
	// string and the right notation; the request or the setting has to change.
	ErrDuration = errors.New("bad duration")

	// ErrLadder is returned when [Parse] cannot make a ladder of its input. The message has one line for each problem.
	ErrLadder = errors.New("bad ladder")
)
