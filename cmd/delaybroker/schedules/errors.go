package schedules

import "errors"

var (
	// ErrFile is returned when a file of schedules is invalid. The error has a line for each problem.
	ErrFile = errors.New("the file of schedules is invalid; nothing was changed")
	// ErrEmpty is returned when a file without schedules would remove its whole set, and Apply.Empty does not allow
	// that.
	ErrEmpty = errors.New("the file has no schedules; nothing was changed")
)
