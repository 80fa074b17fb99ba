package link

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

// JetStream is the JetStream API on the control connection. It records whether the API answers the requests of Sample.
type JetStream struct {
	JS         jetstream.JetStream
	API        jsapi.Client
	unanswered atomic.Bool   // a request got no answer or a 503, and no later request has succeeded
	recovered  chan struct{} // capacity 1; has a value if JetStream answers again
}

func NewJetStream(js jetstream.JetStream, api jsapi.Client) *JetStream {
	return &JetStream{JS: js, API: api, recovered: make(chan struct{}, 1)}
}

// Sample requests the time and the state of a stream from its leader.
func (j *JetStream) Sample(ctx context.Context, stream string) (lane.Sample, error) {
	s, err := j.JS.Stream(ctx, stream)
	j.recordAnswer(err)
	if err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(s.CachedInfo(), time.Now()), nil
}

// Recovered returns a channel that has a value when JetStream answers again. It is never closed.
func (j *JetStream) Recovered() <-chan struct{} { return j.recovered }

// recordAnswer records the result of a request.
func (j *JetStream) recordAnswer(err error) {
	var api *jetstream.APIError
	switch {
	case err == nil && j.unanswered.CompareAndSwap(true, false):
		select {
		case j.recovered <- struct{}{}:
		default:
		}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &api) && api.Code == 503:
		j.unanswered.Store(true)
	}
}
