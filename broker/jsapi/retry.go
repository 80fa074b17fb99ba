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
	// retryWait is the time between a failed request and its repetition.
	retryWait = 25 * time.Millisecond
	// retryElection is the maximum time for which Retry repeats a request while JetStream has no leader. An election takes
	// less.
	retryElection = 5 * time.Second
	// retryInterest is the maximum time for which Retry repeats a request that has no listener: JetStream may be off.
	retryInterest = 500 * time.Millisecond
)

// ErrNoLeader is returned by Retry if JetStream had no leader during all repetitions.
var ErrNoLeader = errors.New("JetStream has no leader at the moment; try again")

// Retry makes a request by ask, and repeats it while the servers of a cluster answer that JetStream has no leader, or
// that the request has no listener. It ends when ctx ends, after 5 s without a leader, or after 500 ms without a
// listener. The servers have not carried out such a request, so any request may be repeated.
func Retry(ctx context.Context, ask func() error) error {
	began := time.Now()
	var last error
	for {
		err := ask()
		limit := retryable(err)
		if last != nil && ctx.Err() != nil {
			err = last // return the last refusal, because the end of ctx does not explain the failure
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

// retryable returns the maximum time for which a request that failed with an error is repeated; zero for no repetition.
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
