package broker

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/fault"
	"delaybroker/broker/stats"
)

// payloadInterval is the interval at which the broker asks for the server's max_payload while a message is too large.
const payloadInterval = 5 * time.Second

// watchPayload runs until ctx ends. A message that became too large, even as a dead letter, waits in its lane. The
// server tells a new max_payload only to a new connection, so watchPayload makes one at intervals while such a message
// waits. If the server accepts larger messages than the links know, it reconnects the links that publish.
func (b *Broker) watchPayload(ctx context.Context) {
	ticker := time.NewTicker(payloadInterval)
	defer ticker.Stop()
	tooLarge := func(l stats.LaneStatus) bool { return l.Fault != nil && l.Fault.Cause == fault.TooLarge }
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !slices.ContainsFunc(b.engine.Lanes(), tooLarge) {
			continue
		}
		for _, nc := range slices.Compact([]*nats.Conn{b.links.Deliver, b.links.Write}) {
			limit, err := maxPayload(ctx, nc)
			if err != nil {
				b.log.Debug("cannot ask for max_payload, will retry", "err", err)
			} else if limit > nc.MaxPayload() {
				b.log.Info("the server accepts larger messages than before; a link reconnects", "max_payload", limit)
				_ = nc.ForceReconnect() // fails only on a closed connection
			}
		}
	}
}

// maxPayload returns the max_payload that the server tells a new connection with the options of a link.
func maxPayload(ctx context.Context, like *nats.Conn) (int64, error) {
	o := like.Opts
	o.AllowReconnect, o.RetryOnFailedConnect = false, false
	o.AsyncErrorCB, o.ClosedCB, o.ConnectedCB, o.DisconnectedErrCB, o.ReconnectedCB = nil, nil, nil, nil, nil
	o.ReconnectErrCB, o.DiscoveredServersCB, o.LameDuckModeHandler = nil, nil, nil
	nc, err := o.Connect()
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, payloadInterval)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil { // the limit of the account and the user comes after the login
		return 0, err
	}
	return nc.MaxPayload(), nil
}
