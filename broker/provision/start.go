package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/layout"
)

const (
	// startPause is how long to wait for a JetStream that does not answer yet.
	startPause = time.Second
	// leaderPatience is how long to wait for streams that have no leader. An election takes up to 9 s; a stream that has
	// lost its majority must not keep the others from being served.
	leaderPatience = 15 * time.Second
	// startRemind is how often the log says so.
	startRemind = 10 * time.Second
)

// Start creates the streams that are missing, and returns the lanes to serve. It waits for a JetStream that does not
// answer, until ctx ends.
func (b *Builder) Start(ctx context.Context) ([]layout.Spec, error) {
	began := time.Now()
	var said time.Time
	for {
		lanes, err := b.provide(ctx, time.Since(began) < leaderPatience)
		if err == nil || ctx.Err() != nil {
			return lanes, nil
		}
		if !isTransient(err) {
			return nil, fmt.Errorf("prepare the streams: %w", err)
		}
		if now := time.Now(); said.IsZero() || now.Sub(said) >= startRemind {
			said = now
			b.log.Warn(startTrouble(err), "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(startPause):
		}
	}
}

// startTrouble says what an error at the start means. If nobody listens where the JetStream API should be, that is no
// outage, or not one that ends by itself.
func startTrouble(err error) string {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return "JetStream is off: start nats-server with -js, or enable it for this account; trying again"
	}
	return "JetStream does not answer; trying again"
}

// isTransient reports whether time may heal an error of the JetStream API: no answer, no leader, no connection, or
// streams that changed while they were listed.
func isTransient(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse, layout.ErrAway,
		jsapi.ErrChanged,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.Code == 503 || api.ErrorCode == jsapi.CodeNoPeers && strings.Contains(api.Description, ", peer offline")
}
