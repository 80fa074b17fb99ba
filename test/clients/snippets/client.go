package snippets

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
)

// Ask does the same as Publish, with package client.
func Ask(ctx context.Context, js jetstream.JetStream) error {
	delays, err := client.New(js, client.Config{})
	if err != nil {
		return err
	}
	_, err = delays.In(ctx, "orders.expire", 5*time.Second, []byte(`{"id":42}`), client.ID("order-42/expire"))
	if err != nil {
		return err
	}
	if _, err := delays.In(ctx, "orders.expire", 1500*time.Millisecond, []byte(`{"id":43}`)); err != nil {
		return err
	}
	_, err = delays.At(ctx, "orders.expire", time.Now().Add(6500*time.Millisecond), []byte(`{"id":44}`))
	return err
}

// Pending does the same as Timer, with package client.
func Pending(ctx context.Context, js jetstream.JetStream) error {
	delays, err := client.New(js, client.Config{})
	if err != nil {
		return err
	}
	_, err = delays.In(ctx, "orders.expire", 30*time.Minute, []byte(`{"id":42}`), client.Key("order-42"))
	if err != nil {
		return err
	}
	if _, err := delays.MovePending(ctx, "order-42", "orders.expire", 2*time.Second); err != nil {
		return err
	}
	_, err = delays.In(ctx, "orders.expire", 2*time.Second, []byte(`{"id":43}`), client.Key("order-43"))
	if err != nil {
		return err
	}
	cancelled, err := delays.CancelPending(ctx, "order-43", "orders.expire")
	if err == nil && !cancelled {
		return errors.New("too late")
	}
	return err
}
