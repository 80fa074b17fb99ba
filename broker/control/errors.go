package control

import (
	"errors"
	"fmt"
)

// ErrLeader is returned when the stream has no leader that a majority follows: what it says may be old.
var ErrLeader = errors.New("the stream of timers has no leader that a majority follows")

// Refusal is the error of a request that was not carried out, and will not be.
type Refusal struct {
	Code     int // as of HTTP
	Sentence string
}

func (r *Refusal) Error() string { return r.Sentence }

// The codes of refusals.
const (
	codeBad     = 400
	codeNone    = 404
	codeLarge   = 413
	codeBusy    = 429
	codeTrouble = 503
	codeRoom    = 507
)

func refusef(code int, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Sentence: fmt.Sprintf(format, args...)}
}
