package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// requestState requests the state of the stream from its leader. It returns the state as a sample, and as the cached
// info of the returned stream.
func (r *Reader) requestState(ctx context.Context) (stream jetstream.Stream, sample Sample, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		if stream, err = r.cfg.JetStream.Stream(ctx, r.cfg.Stream); err != nil {
			return fmt.Errorf("look up the stream: %w", err)
		}
		sample = SampleOf(stream.CachedInfo(), time.Now())
		return nil
	})
	return stream, sample, err
}

// listDeleted requests the deleted sequences in the middle of the stream from its leader. If the lane is only a part of
// the stream, listDeleted returns no sequences: with the deleted messages of other parts, the list could be too large
// for an answer.
func (r *Reader) listDeleted(ctx context.Context, stream jetstream.Stream) (deleted runs, err error) {
	if stream.CachedInfo().State.NumDeleted == 0 || r.cfg.Filter != allSubjects {
		return nil, nil
	}
	err = r.request(ctx, func(ctx context.Context) error {
		info, err := stream.Info(ctx, jetstream.WithDeletedDetails(true))
		if err != nil {
			return fmt.Errorf("list the deleted messages: %w", err)
		}
		deleted = runsOf(info.State.Deleted)
		return nil
	})
	return deleted, err
}

// message requests one message from the stream's leader.
func (r *Reader) message(ctx context.Context, sequence uint64) (m jsapi.Message, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		m, err = r.api.Message(ctx, r.cfg.Stream, sequence)
		return err
	})
	return m, err
}

// hasMore asks the stream's leader whether the lane has a message after the last message read. A sample does not show
// this, because the message with the sample's last sequence may have been deleted. A direct get does not show it
// either, because any replica may answer.
func (r *Reader) hasMore(ctx context.Context) (bool, error) {
	err := r.request(ctx, func(ctx context.Context) error {
		_, err := r.api.Next(ctx, r.cfg.Stream, r.knowledge.next, r.cfg.Filter)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// request calls send, which sends a request to the JetStream API. If the connection is lost, request returns ErrOffline
// immediately: no answer can come, and a wait for the timeout would make messages late.
func (r *Reader) request(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- send(ctx) }()
	for {
		select {
		case err := <-result:
			return err
		case s := <-r.status:
			if s != nats.CONNECTED {
				cancel()
				<-result
				return ErrOffline
			}
		}
	}
}
