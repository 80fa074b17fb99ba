package snippets

import (
	"context"
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
