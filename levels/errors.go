package levels

import "errors"

var (
	// ErrDuration is returned when [ParseDuration] cannot read a string as a duration. The error's text names the string
	// and the right notation. The request or the setting has to change.
	ErrDuration = errors.New("bad duration")

	// ErrLadder is returned when [Parse] cannot make a ladder from its input. The message has one line for each problem.
	ErrLadder = errors.New("bad ladder")
)
