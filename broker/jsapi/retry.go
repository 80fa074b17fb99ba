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
	// retryWait is the pause before a question is asked again.
	retryWait = 25 * time.Millisecond
	// retryElection is for how long Retry asks while JetStream has no leader. An election takes less.
	retryElection = 5 * time.Second
	// retryInterest is for how long Retry asks while nobody listens: JetStream may be off.
	retryInterest = 500 * time.Millisecond
)

// ErrNoLeader is returned by Retry when JetStream had no leader for as long as it asked.
var ErrNoLeader = errors.New("JetStream has no leader at the moment; try again")

// Retry asks a question, and asks it again while the servers of a cluster answer that JetStream has no leader, or that
// nobody listens. It ends when ctx ends, after 5 s without a leader, or after 500 ms without a listener. The servers
// have not carried out the request, so any request may be repeated.
func Retry(ctx context.Context, ask func() error) error {
	began := time.Now()
	var last error
	for {
		err := ask()
		limit := retryable(err)
		if last != nil && ctx.Err() != nil {
			err = last // it says more than the end of ctx
		}
		if limit == 0 || ctx.Err() != nil || time.Since(began) >= limit {
			if retryable(err) == retryElection {
				return fmt.Errorf("%w (%w)", ErrNoLeader, err)
			}
			return err
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(retryWait):
		}
	}
}

// retryable is for how long a question with this error may be asked again.
func retryable(err error) time.Duration {
	refusal := (*jetstream.APIError)(nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return retryInterest
	case errors.As(err, &refusal) && refusal.ErrorCode == codeNoLeader:
		return retryElection
	}
	return 0
}
