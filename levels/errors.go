package levels

import "errors"

var (
	// ErrDuration is returned when a string is not a duration as [ParseDuration] reads it. The message names the string
	// and says how to write it; the request or the setting that holds it has to change.
	ErrDuration = errors.New("bad duration")

	// ErrLadder is returned when [Parse] cannot make a ladder of its input. The message has one line for each problem.
	ErrLadder = errors.New("bad ladder")
)
