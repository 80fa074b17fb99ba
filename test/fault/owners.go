//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// This file has the faults of the ownership of lanes.

// cutNoticed is how long the other servers may take to elect leaders among themselves: a broker that starts before
// ends.
const cutNoticed = 10 * time.Second

// bucket is the stream with the owners of lanes.
const bucket = "DELAY_OWNERS"

// purgeOwners purges the bucket, as an operator might do because it holds no messages of users. It kills a broker when
// the others have written again: they take over its lanes.
func purgeOwners(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s, err := w.js.Stream(ctx, bucket)
	if err != nil {
		return nil, err
	}
	before := s.CachedInfo().State.Msgs
	if before == 0 {
		return nil, errors.New("the bucket was empty")
	}
	if err := s.Purge(ctx); err != nil {
		return nil, err
	}
	time.Sleep(lead)
	b := w.anyBroker()
	proof, err := b.kill()
	return func() (string, error) { return fmt.Sprintf("%d purged; %s", before, proof), b.run() }, err
}

// deleteOwners deletes the bucket. Whether brokers make another one is up to them; delivery goes on.
func deleteOwners(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := w.js.DeleteStream(ctx, bucket)
	return func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		_, err := w.js.Stream(ctx, bucket)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return "deleted, and not there again", nil
		case err == nil:
			return "deleted, and made anew", nil
		default:
			return "deleted", nil // who cannot be asked is not the bucket's fault
		}
	}, err
}

// alone stops all brokers but one, and returns it.
func (w *world) alone() (*broker, error) {
	for _, b := range w.brokers[1:] {
		if _, err := b.terminate(); err != nil {
			return nil, err
		}
	}
	time.Sleep(lead) // it has noticed
	return w.brokers[0], nil
}

// together starts the brokers that do not run.
func (w *world) together() error {
	for _, b := range w.brokers {
		if b.running() {
			continue
		}
		if err := b.run(); err != nil {
			return err
		}
	}
	return nil
}

// cutLoneBroker holds back the traffic of a lone broker, while another starts, finds it silent, and takes over. The
// first does not even lose its connections.
func cutLoneBroker(w *world) (func() (string, error), error) {
	lone, err := w.alone()
	if err != nil {
		return nil, err
	}
	heal := cut(lone.links)
	err = w.brokers[1].run()
	return func() (string, error) {
		proof, err := heal()
		if err != nil {
			return "", err
		}
		return proof, w.together()
	}, err
}

// cutLoneServer does the same to the server which the lone broker is on, that it may stay connected, to a server
// without the others.
func cutLoneServer(w *world) (func() (string, error), error) {
	lone, err := w.alone()
	if err != nil {
		return nil, err
	}
	before := w.plan.home
	home := w.cluster[max(before-1, 0)]
	lone.stayAt(home)
	if err := lone.awaitReady(); err != nil {
		return nil, err
	}
	heal := cut(w.cluster.proxies(home))
	other := w.brokers[1]
	other.stayAt(w.cluster[(max(before-1, 0)+1)%len(w.cluster)])
	time.Sleep(cutNoticed)
	err = other.run()
	return func() (string, error) {
		proof, err := heal()
		if err != nil {
			return "", err
		}
		for _, b := range w.brokers[:2] {
			if before == 0 {
				b.stayAt(nil)
			} else {
				b.stayAt(home)
			}
		}
		return proof, w.together()
	}, err
}
