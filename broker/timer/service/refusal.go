package service

import (
	"errors"
	"fmt"
	"net/http"
)

// A refusal is the error of a request that was not carried out.
type refusal struct {
	code     int // an HTTP status
	sentence string
}

func (r *refusal) Error() string { return r.sentence }

// StatusCode returns the code of the answer.
func (r *refusal) StatusCode() int { return r.code }

func refusef(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// statusOf returns the code of the answer to a request with this error.
func statusOf(err error) int {
	status, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	if !ok {
		return http.StatusServiceUnavailable
	}
	return status.StatusCode()
}
