package broker

import (
	"context"
	"time"

	"delaybroker/broker/link"
)

// Links are the broker's connections to NATS.
type Links = link.Links

// probeEvery is the minimum interval between two checks of all consumers because a stream answers again.
const probeEvery = 10 * time.Second

// watchLinks wakes the workers when a connection is back, until ctx ends: messages that became due meanwhile go out at
// once.
func (b *Broker) watchLinks(ctx context.Context) {
	b.links.Watch(ctx, func() {
		b.engine.Wake()
		b.pauses.Refresh()
	})
}

// watchJetStream makes the leaser and all consumers check their state when a stream answers again over a connection
// that was never lost: the consumers may be gone. Consumers are checked at most every probeEvery.
func (b *Broker) watchJetStream(ctx context.Context) {
	var probe <-chan time.Time // nil unless consumers are to be checked
	var probed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.jetstream.Back():
			b.leaser.Probe()
			b.pauses.Refresh()
			if probe == nil {
				probe = time.After(time.Until(probed.Add(probeEvery)))
			}
		case <-probe:
			probe, probed = nil, time.Now()
			b.engine.Probe()
		}
	}
}
