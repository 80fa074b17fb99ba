package store

import (
	"errors"
	"fmt"
)

// ErrLeader is returned if no majority follows the answering leader, or its answer is about another subject.
var ErrLeader = errors.New("the stream of timers has no leader that a majority follows")

// ErrSecret is returned if a change needs a sealed entry, and the brokers' secrets are unknown. Nothing was changed.
var ErrSecret = errors.New("the secrets of the brokers are not known here, and brokers ignore an entry without a seal")

// errNoTime is returned if the leader of the timers' stream did not return its time. Nothing was published.
var errNoTime = errors.New("the time of the stream's leader is unknown")

// Refusal is the error of a request that was not carried out, and will not be.
type Refusal struct {
	Code     int // an HTTP status
	Sentence string

	cause error // ErrSecret, or nil
}

func (r *Refusal) Error() string { return r.Sentence }

func (r *Refusal) Unwrap() error { return r.cause }

const (
	CodeBadRequest  = 400
	CodeNotFound    = 404
	CodeTooLarge    = 413
	CodeBusy        = 429
	CodeUnavailable = 503
	CodeNoRoom      = 507
)

func Refusef(code int, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Sentence: fmt.Sprintf(format, args...)}
}

func noStreamRefusal() *Refusal {
	return Refusef(CodeNotFound, "there is no stream of timers here: a broker creates it unless DELAY_TIMERS=off")
}
