// Package snippets shows how to ask for a delay, once in each language; see test/clients for how far each was run.
package snippets

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Publish asks for three delays: a level's, any other, and a time.
func Publish(ctx context.Context, js jetstream.JetStream) error {
	if _, err := js.Publish(ctx, "delay.5s.orders.expire", []byte(`{"id":42}`)); err != nil {
		return err
	}
	if _, err := js.Publish(ctx, "delayin.1500ms.orders.expire", []byte(`{"id":43}`)); err != nil {
		return err
	}
	m := nats.NewMsg("delay.5s.orders.expire") // at a time, which is to lie five seconds ahead or more
	m.Header.Set("Delay-Until", time.Now().Add(6500*time.Millisecond).Format(time.RFC3339Nano))
	m.Data = []byte(`{"id":44}`)
	_, err := js.PublishMsg(ctx, m)
	return err
}
