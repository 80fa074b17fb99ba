package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// explain converts the error of a failed publish to an error of this package. Refusal returns the server's permission
// error for a subject, or nil.
func explain(d *draft, err error, refusal func(subject string) error) error {
	subject, denied := d.msg.Subject, refusal(d.msg.Subject)
	if d.fallback != nil {
		denied = cmp.Or(denied, refusal(d.fallback.Subject))
		if sentinelOf(err) == ErrNoBroker {
			subject += ", then to " + d.fallback.Subject
		}
	}
	if sentinelOf(err) == ErrConflict {
		return fmt.Errorf("publish to %s: %w: %s", subject, ErrConflict, conflict(d))
	}
	return failure("publish to "+subject, err, denied)
}

// conflict explains the server's error "wrong last sequence" for a timer.
func conflict(d *draft) string {
	if d.timer.expected != nil && *d.timer.expected == 0 {
		return "there is a timer, or one has ended within DELAY_TIMER_HISTORY"
	}
	return "no timer with this generation: it has fired, was replaced or cancelled, or was never set"
}

// failure converts the error of a failed request to an error of this package. Denied is the server's permission error,
// or nil. If there was no answer, the result wraps denied instead of err.
func failure(action string, err, denied error) error {
	kind := sentinelOf(err)
	switch {
	case kind == nil:
		return fmt.Errorf("%s: %w", action, err)
	case kind == ErrUnanswered && denied != nil:
		err = denied
	}
	return fmt.Errorf("%s: %w: %w", action, kind, err)
}

// sentinelOf returns the sentinel of this package for an error of a publish, or nil.
func sentinelOf(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return ErrNoBroker
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	case errors.Is(err, jetstream.ErrInvalidJSAck), errors.Is(err, jsapi.ErrWrongAnswer):
		return ErrForeign
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, nats.ErrTimeout),
		errors.Is(err, nats.ErrDisconnected), errors.Is(err, jetstream.ErrAsyncPublishTimeout),
		errors.Is(err, nats.ErrConnectionClosed):
		return ErrUnanswered
	case errors.As(err, &api):
		return sentinelOfCode(api.ErrorCode)
	}
	return nil
}

func sentinelOfCode(code jetstream.ErrorCode) error {
	switch outcome := (jsapi.Ack{Code: int(code)}).Outcome(); {
	case outcome == jsapi.TooLarge:
		return ErrTooLarge
	case outcome.Full(), code == jsapi.CodeTooMany: // the stream's queue is full
		return ErrFull
	case outcome == jsapi.Conflict:
		return ErrConflict
	case outcome == jsapi.Busy, outcome == jsapi.Undecided:
		return ErrUnanswered
	}
	return nil
}
