package broker

import (
	"context"
	"time"

	"delaybroker/broker/link"
)

// Links are the broker's connections to NATS.
type Links = link.Links

// probeInterval is the minimum time between two checks of all consumers.
const probeInterval = 10 * time.Second

// watchLinks wakes the workers when a connection is back, until ctx ends. So the workers immediately deliver the
// messages that became due while the connection was lost.
func (b *Broker) watchLinks(ctx context.Context) {
	b.linkStates.Watch(ctx, func() {
		b.engine.Wake()
		b.pauses.Refresh()
	})
}

// watchJetStream runs until ctx ends. JetStream may be silent although no connection is lost. When it answers again,
// watchJetStream checks the leases. It also checks the consumers, which the server may have removed during the silence,
// but at most once in each probeInterval.
func (b *Broker) watchJetStream(ctx context.Context) {
	var probe <-chan time.Time // nil unless a check of the consumers is pending
	var lastProbe time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.jetstream.Recovered():
			b.leaser.Probe()
			b.pauses.Refresh()
			if probe == nil {
				probe = time.After(time.Until(lastProbe.Add(probeInterval)))
			}
		case <-probe:
			probe, lastProbe = nil, time.Now()
			b.engine.Probe()
		}
	}
}
