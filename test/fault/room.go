//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/fault/history"
)

// This file is the faults of an account that has no room left.

const ballast = "BALLAST"

// fillStore fills the account to the last kilobyte.
func fillStore(w *world) (func() (string, error), error) {
	refusal, err := w.fill()
	return func() (string, error) { return "refused: " + refusal, w.makeRoom() }, err
}

// fill publishes ballast until it is refused for want of room, and returns the refusal.
func (w *world) fill() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := w.js.CreateOrUpdateStream(ctx,
		jetstream.StreamConfig{Name: ballast, Subjects: []string{"ballast"}, Replicas: servers})
	if err != nil {
		return "", err
	}
	var refusal *jetstream.APIError
	body := make([]byte, 512<<10)
	for refusal == nil && ctx.Err() == nil {
		_, err = w.js.Publish(ctx, "ballast", body, jetstream.WithRetryAttempts(0))
		errors.As(err, &refusal)
		if err != nil && len(body) > 1<<10 {
			body, refusal = body[:len(body)/2], nil // to the last kilobyte
		}
	}
	if refusal == nil {
		return "", fmt.Errorf("there was always room: %w", err)
	}
	return refusal.Description, nil
}

func (w *world) makeRoom() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error {
		err := w.js.DeleteStream(ctx, ballast)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = nil
		}
		return err
	})
}

const (
	// pushed are messages to core subscribers, who need no room, and pushLevel the level that they wait on: as long as
	// owners need to notice that their beats are refused, and to give up.
	pushed    = 200
	pushLevel = "30s"
)

// fillStoreForLong fills the account when messages to core subscribers wait, and leaves it full until they are due and
// longer. They come in time, their lane is purged, and both while nothing can be stored.
func fillStoreForLong(w *world) (func() (string, error), error) {
	nc, err := w.connect(w.cluster.urls(0), "pusher")
	if err != nil {
		return nil, err
	}
	pusher, err := newPublisher("c", nc, w, 0)
	if err != nil {
		return nil, err
	}
	for i := range pushed {
		pusher.publish(history.Event{
			Target: fmt.Sprintf("push.%d", i), Delay: 30 * time.Second, Subject: fmt.Sprintf("delay.%s.push.%d", pushLevel, i),
			Core: true, Within: 5 * time.Second,
		}, "", "", func() {})
	}
	pusher.answers.Wait()
	refusal, err := w.fill()
	return func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		left := pushed
		if err := await(5*time.Second, func() error {
			lanes, err := w.lanes(ctx)
			if err != nil {
				return err
			}
			left = lanes["DELAY_"+pushLevel]
			if left > 0 {
				return errors.New("not purged")
			}
			return nil
		}); err != nil {
			w.broken("in a full account, the lane of core subscribers still holds %d of %d: %v", left, pushed, err)
		}
		return "refused: " + refusal, w.makeRoom()
	}, err
}
