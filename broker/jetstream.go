package broker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
)

// jetStream is the JetStream API on the control link, and whether it answers. Each question goes to the stream's
// leader: a direct get may be answered by a replica that lags.
type jetStream struct {
	js   jetstream.JetStream
	api  jsapi.Client
	away atomic.Bool   // a question was left without an answer
	back chan struct{} // one slot: it answers again
}

func newJetStream(js jetstream.JetStream, api jsapi.Client) *jetStream {
	return &jetStream{js: js, api: api, back: make(chan struct{}, 1)}
}

// sample asks a stream's leader for its time and state.
func (j *jetStream) sample(ctx context.Context, stream string) (lane.Sample, error) {
	s, err := j.js.Stream(ctx, stream)
	j.noted(err)
	if err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(s.CachedInfo(), time.Now()), nil
}

// noted notes whether JetStream answers.
func (j *jetStream) noted(err error) {
	var api *jetstream.APIError
	switch {
	case err == nil && j.away.CompareAndSwap(true, false):
		select {
		case j.back <- struct{}{}:
		default:
		}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &api) && api.Code == 503:
		j.away.Store(true)
	}
}
