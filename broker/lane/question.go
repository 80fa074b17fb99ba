package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"delaybroker/broker/jsapi"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// look requests the stream's state from its leader.
func (r *Reader) look(ctx context.Context) (info *jetstream.StreamInfo, sample Sample, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		s, err := r.cfg.JetStream.Stream(ctx, r.cfg.Stream)
		if err != nil {
			return fmt.Errorf("look at the stream: %w", err)
		}
		info = s.CachedInfo()
		sample = SampleOf(info, time.Now())
		return nil
	})
	return info, sample, err
}

// listDeleted requests the deleted sequences in the middle of the stream from its leader. It does so only if look
// reports any, and if the lane is the whole stream. If the lane is a part of a stream, the list may be too large for an
// answer, because it contains the deleted messages of other parts.
func (r *Reader) listDeleted(ctx context.Context, look *jetstream.StreamInfo) (d deleted, err error) {
	if look.State.NumDeleted == 0 || r.cfg.Filter != everything {
		return nil, nil
	}
	err = r.request(ctx, func(ctx context.Context) error {
		s, err := r.cfg.JetStream.Stream(ctx, r.cfg.Stream)
		if err != nil {
			return fmt.Errorf("look up the stream: %w", err)
		}
		info, err := s.Info(ctx, jetstream.WithDeletedDetails(true))
		if err != nil {
			return fmt.Errorf("list the deleted messages: %w", err)
		}
		d = deletedOf(info.State.Deleted)
		return nil
	})
	return d, err
}

// message requests one message from the stream's leader.
func (r *Reader) message(ctx context.Context, sequence uint64) (m jsapi.Message, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		m, err = r.api.Message(ctx, r.cfg.Stream, sequence)
		return err
	})
	return m, err
}

// more asks the stream's leader whether it has a message after the last message read. The last sequence of a sample
// does not show this, because the message with that sequence may have been deleted. A direct get does not show it
// either, because any replica may answer it.
func (r *Reader) more(ctx context.Context) (bool, error) {
	err := r.request(ctx, func(ctx context.Context) error {
		_, err := r.api.Next(ctx, r.cfg.Stream, r.known.next, r.cfg.Filter)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// request calls send, which sends a request to the JetStream API. If the connection is lost, request returns at once:
// no answer can come then, and waiting for the timeout would make messages late.
func (r *Reader) request(ctx context.Context, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- send(ctx) }()
	for {
		select {
		case err := <-answered:
			return err
		case s := <-r.status:
			if s != nats.CONNECTED {
				cancel()
				<-answered
				return errOffline
			}
		}
	}
}
