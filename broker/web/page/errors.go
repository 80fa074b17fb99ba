package page

import "errors"

var (
	// errRequest is returned for an invalid request. The error that wraps errRequest names the problem.
	errRequest = errors.New("invalid request")
	// errTicket is returned for the ticket of a plan that has expired, was made with another token, or was changed.
	errTicket = errors.New("the plan is no longer valid: plan the action again")
)
