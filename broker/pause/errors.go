package pause

import "errors"

var (
	// ErrPaused is returned for a pattern that is already paused.
	ErrPaused = errors.New("the pattern is already paused")
	// errResuming is returned for a pattern that is already being resumed. Its waiting messages are being sent.
	errResuming = errors.New("the pattern is already being resumed")
	// ErrNotPaused is returned for a pattern that is not paused. Resume takes exactly the pattern that was paused.
	ErrNotPaused = errors.New("the pattern is not paused")
	// errTooMany is returned when the list is full.
	errTooMany = errors.New("too many patterns are paused")
	// ErrConflict is returned when another writer has changed the list meanwhile. The caller reads the list again.
	ErrConflict = errors.New("another writer changed the list of pauses meanwhile")
)
