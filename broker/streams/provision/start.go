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
	"delaybroker/broker/ratelog"
	"delaybroker/broker/streams"
)

const (
	// startBackoff is the time between two attempts while JetStream does not answer.
	startBackoff = time.Second
	// leaderTimeout is the time for which Start waits for streams without a leader. An election normally takes at most 9
	// s. After leaderTimeout, the broker starts although streams have no leader.
	leaderTimeout = 15 * time.Second
	// startLogInterval is the minimum time between two log lines about failed attempts.
	startLogInterval = 10 * time.Second
)

// Start provisions the streams, and returns the lanes to serve. While JetStream does not answer, Start retries until
// ctx ends, and then returns no error.
func (b *Builder) Start(ctx context.Context) ([]streams.Spec, error) {
	began := time.Now()
	var logLimit ratelog.Limit
	for {
		lanes, err := b.provide(ctx, time.Since(began) < leaderTimeout)
		if err == nil || ctx.Err() != nil {
			return lanes, nil
		}
		if !isTransient(err) {
			return nil, fmt.Errorf("prepare the streams: %w", err)
		}
		if _, ok := logLimit.Allow(startLogInterval); ok {
			b.log.Warn(startMessage(err), "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(startBackoff):
		}
	}
}

// startMessage returns the log line for an error at the start. If no server listens on the subjects of the JetStream
// API, JetStream is off, and an operator must enable it.
func startMessage(err error) string {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return "JetStream is off: start nats-server with -js, or enable it for this account; will retry"
	}
	return "JetStream does not answer; will retry"
}

// isTransient reports whether an error of the JetStream API may end by itself: no answer, no leader, no connection, a
// server that is offline, or streams that changed while they were listed.
func isTransient(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse, streams.ErrNoLeader,
		jsapi.ErrChanged,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	apiErr, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (apiErr.Code == 503 ||
		apiErr.ErrorCode == jsapi.CodeNoPeers && strings.Contains(apiErr.Description, ", peer offline"))
}
