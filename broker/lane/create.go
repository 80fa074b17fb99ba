package lane

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// createConsumer creates a consumer with one replica. An account may have no limits for one replica ("tier R1"), only
// for the replicas of its streams. Then the consumer gets as many replicas as its stream.
func createConsumer(
	ctx context.Context, js jetstream.JetStream, stream string, cfg jetstream.ConsumerConfig,
) (jetstream.Consumer, error) {
	cfg.Replicas = 1
	c, err := js.CreateConsumer(ctx, stream, cfg)
	refusal, refused := errors.AsType[*jetstream.APIError](err)
	if !refused || refusal.ErrorCode != jsapi.CodeNoTier {
		return c, err
	}
	s, infoErr := js.Stream(ctx, stream)
	if infoErr != nil {
		return nil, infoErr
	}
	if cfg.Replicas = s.CachedInfo().Config.Replicas; cfg.Replicas == 1 {
		return nil, err
	}
	return js.CreateConsumer(ctx, stream, cfg)
}

// batchLimit returns the number of messages to which a request was refused as larger: the limit max_request_batch of
// the server. Ok is false if the description is of another refusal.
func batchLimit(description string) (limit int, ok bool) {
	text, ok := strings.CutPrefix(description, "Exceeded MaxRequestBatch of ")
	limit, err := strconv.Atoi(text)
	return limit, ok && err == nil && limit > 0
}
