package pause

import "errors"

var (
	// ErrPaused is returned for a pattern that is paused already.
	ErrPaused = errors.New("it is paused already")
	// ErrResuming is returned for a pattern that is being resumed already: what waits for it goes out.
	ErrResuming = errors.New("it is being resumed already")
	// ErrNotPaused is returned for a pattern that was not paused. Patterns are resumed as they were paused.
	ErrNotPaused = errors.New("this pattern is not paused")
	// ErrTooMany is returned when the list is full.
	ErrTooMany = errors.New("too many patterns are paused")
	// ErrConflict is returned when somebody else has changed the list meanwhile. Read it again.
	ErrConflict = errors.New("somebody else changed the list of pauses meanwhile")
)
