package jsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// retryWait is the time between two attempts.
	retryWait = 25 * time.Millisecond
	// maxNoLeader is the maximum time for which Retry repeats a request while JetStream has no leader. An election takes
	// less time.
	maxNoLeader = 5 * time.Second
	// maxNoListener is the maximum time for which Retry repeats a request without a listener. It is short, because
	// JetStream may be off.
	maxNoListener = 500 * time.Millisecond
)

// errNoLeader is returned by Retry if JetStream had no leader until the last attempt.
var errNoLeader = errors.New("JetStream has no leader at the moment; try again")

// Retry calls ask, which sends a request, and repeats the call while the servers answer that JetStream has no leader,
// or that the request has no listener. It ends when ctx ends, or maxNoLeader or maxNoListener after the first attempt:
// the latest answer decides which. The servers have not executed such a request, so Retry is safe for any request.
func Retry(ctx context.Context, ask func() error) error {
	start := time.Now()
	var lastErr error
	for {
		err := ask()
		limit := retryLimit(err)
		if lastErr != nil && ctx.Err() != nil {
			err = lastErr // return the last refusal, because the end of ctx does not explain the failure
		}
		if limit == 0 || ctx.Err() != nil || time.Since(start) >= limit {
			if retryLimit(err) == maxNoLeader {
				return fmt.Errorf("%w (%w)", errNoLeader, err)
			}
			return err
		}
		lastErr = err
		select {
		case <-ctx.Done():
		case <-time.After(retryWait):
		}
	}
}

// retryLimit returns the maximum time for which Retry repeats a request that failed with an error, or zero if it does
// not repeat the request.
func retryLimit(err error) time.Duration {
	if errors.Is(err, nats.ErrNoResponders) {
		return maxNoListener
	}
	if refusal, ok := errors.AsType[*jetstream.APIError](err); ok && refusal.ErrorCode == codeNoLeader {
		return maxNoLeader
	}
	return 0
}
