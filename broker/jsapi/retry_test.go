package jsapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestRetry: Retry repeats a request for a bounded time while there is no leader or no listener. It does not repeat a
// request after any other error.
func TestRetry(t *testing.T) {
	noLeader := &jetstream.APIError{Code: 503, ErrorCode: 10008}
	refused := &jetstream.APIError{Code: 400, ErrorCode: 10003}
	for _, tt := range []struct {
		name    string
		answers []error // the last one is repeated
		timeout time.Duration
		want    error
		took    time.Duration
	}{
		{"answered", []error{nil}, time.Hour, nil, 0},
		{"refused", []error{refused}, time.Hour, refused, 0},
		{"no leader at two attempts", []error{noLeader, noLeader, nil}, time.Hour, nil, 50 * time.Millisecond},
		{"no listener at one attempt", []error{nats.ErrNoResponders, nil}, time.Hour, nil, 25 * time.Millisecond},
		{"no leader", []error{noLeader}, time.Hour, errNoLeader, 5 * time.Second},
		{"no listener", []error{nats.ErrNoResponders}, time.Hour, nats.ErrNoResponders, 500 * time.Millisecond},
		{"no leader until the timeout", []error{noLeader}, time.Second, errNoLeader, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				began, answers := time.Now(), tt.answers
				err := Retry(ctx, func() error {
					answer := answers[0]
					if len(answers) > 1 {
						answers = answers[1:]
					}
					if ctx.Err() != nil {
						return ctx.Err()
					}
					return answer
				})
				if took := time.Since(began); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("got %v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
			})
		})
	}
}
