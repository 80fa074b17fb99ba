package page

import "errors"

var (
	// errAsked is returned for a malformed question; its text says what to change.
	errAsked = errors.New("not understood")
	// errTicket is returned for a plan that was not made with this token, or has expired.
	errTicket = errors.New("this plan is not valid any more: plan it again")
)
