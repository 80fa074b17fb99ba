// Package snippets shows how to request a delay; test/clients has the same for other languages, and says how each was
// tested.
package snippets

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Publish requests three delays: the delay of a level, any other delay, and a time.
func Publish(ctx context.Context, js jetstream.JetStream) error {
	if _, err := js.Publish(ctx, "delay.5s.orders.expire", []byte(`{"id":42}`)); err != nil {
		return err
	}
	if _, err := js.Publish(ctx, "delayin.1500ms.orders.expire", []byte(`{"id":43}`)); err != nil {
		return err
	}
	m := nats.NewMsg("delay.5s.orders.expire") // at a time, at least five seconds ahead
	m.Header.Set("Delay-Until", time.Now().Add(6500*time.Millisecond).Format(time.RFC3339Nano))
	m.Data = []byte(`{"id":44}`)
	_, err := js.PublishMsg(ctx, m)
	return err
}
