package service

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"delaybroker/broker/timer/store"
)

// Call answers a request that is not only about timers. Packages above this one provide Calls. The result is encoded as
// JSON; the error is a *store.Refusal if the request is invalid. If the subject of the Call ends with a wildcard, rest
// is the token in the wildcard's place.
type Call = func(ctx context.Context, rest string, body []byte) (any, error)

// BadRequest returns the error for an invalid request.
func BadRequest(format string, args ...any) *store.Refusal {
	return store.Refusef(store.CodeBad, format, args...)
}

// Decode decodes the body of a request into a value with defaults. An unknown field is an error: a request with
// "dryrun" in place of "dry_run" must not cancel timers.
func Decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return BadRequest("the request is not understood: %v", err)
	}
	if _, err := d.Token(); err != io.EOF { // d.More would accept a bracket
		return BadRequest("the request is not understood: want one JSON object, and nothing behind it")
	}
	return nil
}

// endpointOf returns the endpoint of a call on a subject.
func endpointOf(subject, name string, c Call) *endpoint {
	root := strings.TrimSuffix(subject, ".*")
	e := &endpoint{name: strings.TrimSuffix(name, ".*"), root: root, isMany: true, isCall: true, on: []string{subject}}
	e.answers = func(_ *Service, ctx context.Context, r request) (any, error) {
		return c(ctx, strings.TrimPrefix(strings.TrimPrefix(r.Subject, root), "."), r.Data)
	}
	return e
}
