package levels

import "errors"

var (
	// ErrDuration is returned when [ParseDuration] cannot parse a string. The error's text contains the string and the
	// right notation.
	ErrDuration = errors.New("bad duration")

	// ErrLadder is returned when [Parse] cannot make a ladder from its input. The message has one line for each problem.
	ErrLadder = errors.New("bad ladder")
)
