package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
)

// awayFromHome makes the reader take a new consumer until that is on a server that its broker is not connected to.
func (r *rebirth) awayFromHome(ctx context.Context) (found *jetstream.ConsumerInfo, err error) {
	given := make(map[string]bool)
	err = retry(ctx, func(ctx context.Context) error {
		all, err := r.consumers(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			known := c.Cluster != nil && r.cluster.named(c.Cluster.Leader) != nil
			if len(given) > 0 && !given[c.Name] && known && c.Cluster.Leader != r.home.name {
				found = c
				return nil
			}
			given[c.Name] = true
			if err := r.js.DeleteConsumer(ctx, quiet, c.Name); err != nil {
				return err
			}
		}
		return fmt.Errorf("no consumer of %s is away from %s", quiet, r.home.name)
	})
	return found, err
}

// consumers are those by which the lane was read lately.
func (r *rebirth) consumers(ctx context.Context) ([]*jetstream.ConsumerInfo, error) {
	s, err := r.js.Stream(ctx, quiet)
	if err != nil {
		return nil, err
	}
	list := s.ListConsumers(ctx)
	var all []*jetstream.ConsumerInfo
	for info := range list.Info() {
		if strings.HasPrefix(info.Name, lane.ConsumerPrefix) {
			all = append(all, info)
		}
	}
	return all, list.Err()
}

// info is the consumer's own state.
func (r *rebirth) info() (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := r.js.Consumer(ctx, quiet, r.consumer)
	if err != nil {
		return nil, err
	}
	return c.CachedInfo(), nil
}

// awaitReborn waits until the consumer counts from the beginning.
func (r *rebirth) awaitReborn() error {
	return await(timeout, func() error {
		c, err := r.info()
		if err == nil && c.Delivered.Consumer > 0 {
			err = fmt.Errorf("%s has delivered %d and is not made anew", r.consumer, c.Delivered.Consumer)
		}
		return err
	})
}

// awaitPending waits until the consumer's server has caught up with the stream: it would be given up otherwise.
func (r *rebirth) awaitPending(count uint64) error {
	return await(timeout, func() error {
		c, err := r.info()
		if err == nil && c.NumPending < count {
			err = fmt.Errorf("%s knows of %d messages", r.consumer, c.NumPending)
		}
		return err
	})
}

// awaitAsked waits until the consumer has delivered more than before, or the reader has left it for another. It returns
// the number of messages that the consumer has delivered.
func (r *rebirth) awaitAsked(before uint64) (now uint64, left bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err = retry(ctx, func(ctx context.Context) error {
		all, err := r.consumers(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			left = left || c.Name != r.consumer
			if c.Name == r.consumer {
				now = c.Delivered.Consumer
			}
		}
		if now == before && !left {
			return fmt.Errorf("%s is not asked for more than %d", r.consumer, now)
		}
		return nil
	})
	return now, left, err
}

// awaitEmpty waits until all that was read is committed.
func (r *rebirth) awaitEmpty(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		s, err := r.js.Stream(ctx, quiet)
		if err != nil {
			return err
		}
		if held := s.CachedInfo().State.Msgs; held > 0 {
			return fmt.Errorf("%s holds %d", quiet, held)
		}
		return nil
	})
}
