package broker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
)

// This file is what the engine asks of the JetStream API while it works, on the control link. Each question goes to the
// stream's leader: a direct get may be answered by a replica that lags.

// errHistory is returned when a stream is not the one whose sequences are known. The reader finds out and begins anew.
var errHistory = errors.New("the stream has another history")

// errUnsure is returned when a look at a stream shows less than was read from it, and its leader may have been deposed.
var errUnsure = errors.New("the stream's leader seems to answer from the past")

// sample asks a stream's leader for its time and state.
func (e *engine) sample(ctx context.Context, stream string) (lane.Sample, error) {
	s, err := e.js.Stream(ctx, stream)
	e.noted(err)
	if err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(s.CachedInfo(), time.Now()), nil
}

// noted takes note of whether JetStream is there.
func (e *engine) noted(err error) {
	var api *jetstream.APIError
	switch {
	case err == nil && e.away.CompareAndSwap(true, false):
		select {
		case e.back <- struct{}{}:
		default:
		}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded), errors.As(err, &api) && api.Code == 503:
		e.away.Store(true)
	}
}

// remove deletes one message. That it is gone already is fine.
func (e *engine) remove(ctx context.Context, stream string, seq uint64) error {
	err := e.api.Delete(ctx, stream, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// purge commits a lane by removing what has arrived.
type purge struct {
	*engine
	stream string
}

// Commit removes everything up to seq.
func (p purge) Commit(ctx context.Context, seq uint64) error {
	return p.api.Purge(ctx, p.stream, seq+1)
}
