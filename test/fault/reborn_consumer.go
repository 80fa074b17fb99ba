//go:build linux

package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
)

// moveConsumer makes the reader replace its consumer until the consumer is on a server without a connection of the
// broker.
func (r *rebirth) moveConsumer(ctx context.Context) (found *jetstream.ConsumerInfo, err error) {
	given := make(map[string]bool)
	err = retry(ctx, func(ctx context.Context) error {
		all, err := r.consumers(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			known := c.Cluster != nil && r.cluster.byName(c.Cluster.Leader) != nil
			if len(given) > 0 && !given[c.Name] && known && c.Cluster.Leader != r.home.name {
				found = c
				return nil
			}
			given[c.Name] = true
			if err := r.js.DeleteConsumer(ctx, quietLane, c.Name); err != nil {
				return err
			}
		}
		return fmt.Errorf("%s has no new consumer on another server than %s", quietLane, r.home.name)
	})
	return found, err
}

// consumers returns the brokers' consumers of the lane.
func (r *rebirth) consumers(ctx context.Context) ([]*jetstream.ConsumerInfo, error) {
	s, err := r.js.Stream(ctx, quietLane)
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

// info returns the consumer's info from its own server.
func (r *rebirth) info() (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := r.js.Consumer(ctx, quietLane, r.consumer)
	if err != nil {
		return nil, err
	}
	return c.CachedInfo(), nil
}

// awaitReborn waits until the consumer counts from one again.
func (r *rebirth) awaitReborn() error {
	return await(timeout, func() error {
		c, err := r.info()
		if err == nil && c.Delivered.Consumer > 0 {
			err = fmt.Errorf("%s has delivered %d and was not created again", r.consumer, c.Delivered.Consumer)
		}
		return err
	})
}

// awaitPending waits until the consumer's server has caught up with the stream. Otherwise the reader would replace the
// consumer.
func (r *rebirth) awaitPending(count uint64) error {
	return await(timeout, func() error {
		c, err := r.info()
		if err == nil && c.NumPending < count {
			err = fmt.Errorf("%s knows of %d messages, want %d", r.consumer, c.NumPending, count)
		}
		return err
	})
}

// awaitDeliveries waits until the consumer has delivered more messages than before, or the lane has another consumer.
// It returns the number of messages that the consumer has delivered, and whether the lane has another consumer.
func (r *rebirth) awaitDeliveries(before uint64) (now uint64, replaced bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err = retry(ctx, func(ctx context.Context) error {
		all, err := r.consumers(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			replaced = replaced || c.Name != r.consumer
			if c.Name == r.consumer {
				now = c.Delivered.Consumer
			}
		}
		if now == before && !replaced {
			return fmt.Errorf("%s has delivered %d messages, and the reader requested no more", r.consumer, now)
		}
		return nil
	})
	return now, replaced, err
}

func (r *rebirth) awaitEmpty(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		s, err := r.js.Stream(ctx, quietLane)
		if err != nil {
			return err
		}
		if held := s.CachedInfo().State.Msgs; held > 0 {
			return fmt.Errorf("%s holds %d messages", quietLane, held)
		}
		return nil
	})
}
