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

// This file has the faults of an account without free storage.

const ballast = "BALLAST"

// fillStore fills the account to the last kilobyte.
func fillStore(w *world) (func() (string, error), error) {
	refusal, err := w.fill()
	return func() (string, error) { return "refused: " + refusal, w.makeRoom() }, err
}

// fill publishes ballast until the server refuses it for lack of room, and returns the refusal.
func (w *world) fill() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	stream := jetstream.StreamConfig{Name: ballast, Subjects: []string{"ballast"}, Replicas: servers}
	err := retry(ctx, func(ctx context.Context) error { // retries until the servers of an earlier fault are online again
		_, err := w.js.CreateOrUpdateStream(ctx, stream)
		return err
	})
	if err != nil {
		return "", err
	}
	var refusal *jetstream.APIError
	body := make([]byte, 512<<10)
	for refusal == nil && ctx.Err() == nil {
		_, err = w.js.Publish(ctx, "ballast", body, jetstream.WithRetryAttempts(0))
		errors.As(err, &refusal)
		if err != nil && len(body) > 1<<10 {
			body, refusal = body[:len(body)/2], nil // smaller messages fill the rest, to the last kilobyte
		}
	}
	if refusal == nil {
		return "", fmt.Errorf("the account was not full before the timeout: %v", err)
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
	// pushed is the number of messages to core subscribers, whose delivery needs no storage. They wait on pushLevel, for
	// as long as owners need to detect that the server refuses their heartbeats, and to stop.
	pushed    = 200
	pushLevel = "30s"
)

// fillStoreForLong fills the account while messages to core subscribers wait, and keeps it full until after their due
// time. The messages must be delivered on time and purged from their lane although nothing can be stored.
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
			w.addViolation("in a full account, the lane of core subscribers still holds %d of %d: %v", left, pushed, err)
		}
		return "refused: " + refusal, w.makeRoom()
	}, err
}
