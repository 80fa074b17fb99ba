package schedules

import "errors"

var (
	// ErrFile is returned when a file of schedules cannot be understood. The error has a line for each problem.
	ErrFile = errors.New("the file of schedules is wrong, and nothing was done")
	// ErrEmpty is returned when a file without schedules would remove all of its set, and nobody said that this is meant.
	ErrEmpty = errors.New("the file has no schedules, and nothing was done")
)
