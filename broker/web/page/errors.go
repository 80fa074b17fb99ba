package page

import "errors"

var (
	// errAsked is returned for an invalid request. The error that wraps it names the problem.
	errAsked = errors.New("invalid request")
	// errTicket is returned for a plan that was not made with this token, or has expired.
	errTicket = errors.New("this plan is no longer valid: plan the action again")
)
