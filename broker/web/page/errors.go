package page

import "errors"

var (
	// errAsked is returned for a question that makes no sense; its text says what to change.
	errAsked = errors.New("not understood")
	// errTicket is returned for a plan that was not made with this token, or long ago.
	errTicket = errors.New("this plan is not valid any more: plan it again")
)
