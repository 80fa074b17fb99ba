package change

import (
	"errors"
	"fmt"

	"delaybroker/broker/message"
)

// ErrLeader is returned if no majority follows the answering leader, or its answer is about another subject.
var ErrLeader = errors.New("the stream of timers has no leader that a majority follows")

// ErrSecret is returned if a change needs a sealed entry, and the brokers' secrets are unknown. Nothing was changed.
var ErrSecret = errors.New("the secrets of the brokers are not known here, and brokers ignore an entry without a seal")

// errNoTime is returned if the leader of the timers' stream did not return its time. Nothing was published.
var errNoTime = errors.New("the time of the stream's leader is unknown")

// Error is the error of a request that was not carried out, and will not be.
type Error struct {
	Code     int // an HTTP status
	Sentence string

	Problem *message.Problem // the problem of the refused entry; nil for another reason
	cause   error            // ErrSecret, or nil
}

func (r *Error) Error() string { return r.Sentence }

// StatusCode returns Code.
func (r *Error) StatusCode() int { return r.Code }

// ProblemCode returns the code of Problem; empty without one.
func (r *Error) ProblemCode() string {
	if r.Problem == nil {
		return ""
	}
	return string(r.Problem.Code)
}

func (r *Error) Unwrap() error { return r.cause }

const (
	CodeBadRequest  = 400
	CodeNotFound    = 404
	CodeTooLarge    = 413
	CodeBusy        = 429
	CodeUnavailable = 503
	CodeNoRoom      = 507
)

func Refusef(code int, format string, args ...any) *Error {
	return &Error{Code: code, Sentence: fmt.Sprintf(format, args...)}
}

// Refuse returns the refusal of a request whose entry would have a problem.
func Refuse(p *message.Problem) *Error {
	return &Error{Code: CodeBadRequest, Sentence: p.Sentence, Problem: p}
}

// NoStream returns the refusal of a request to an account without a stream of timers.
func NoStream() *Error {
	return Refusef(CodeNotFound, "there is no stream of timers here: a broker creates it unless DELAY_TIMERS=off")
}
