package snippets

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Schedule requests schedules from a broker with DELAY_SCHEDULES=schedules.orders.>=orders.>, in nats-server's format.
func Schedule(ctx context.Context, js jetstream.JetStream) error {
	target := jetstream.WithScheduleTarget("orders.expire")
	for subject, body := range map[string]string{
		"schedules.orders.42": `{"id":42}`, "schedules.orders.43": `{"id":43}`,
	} {
		at := jetstream.WithScheduleAt(time.Now().Add(3 * time.Second)) // whole seconds
		if _, err := js.Publish(ctx, subject, []byte(body), at, target); err != nil {
			return err
		}
	}
	// cancelled
	_, err := js.Publish(ctx, "schedules.orders.43", nil)
	return err
}
