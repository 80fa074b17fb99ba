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

// electionTime is the time that the other servers may need to elect leaders after a cut.
const electionTime = 10 * time.Second

// bucket is the stream with the owners of lanes.
const bucket = "DELAY_OWNERS"

// purgeOwners purges the bucket, as an operator might do because the bucket holds no messages of users. After a pause,
// in which the instances write to the bucket again, purgeOwners kills a broker. The others take over its lanes.
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

// deleteOwners deletes the bucket. Delivery must continue, whether the brokers create the bucket again or not.
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
			return "deleted, and not created again", nil
		case err == nil:
			return "deleted, and created again", nil
		default:
			return "deleted", nil // a failed lookup does not count against the fault
		}
	}, err
}

// stopOthers stops all brokers except the first, and returns the first.
func (w *world) stopOthers() (*broker, error) {
	for _, b := range w.brokers[1:] {
		if _, err := b.terminate(); err != nil {
			return nil, err
		}
	}
	time.Sleep(lead) // the broker detects that it is alone
	return w.brokers[0], nil
}

func (w *world) startAll() error {
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

// cutLoneBroker holds back the traffic of a lone broker. Another broker starts, gets no answer from the lone broker,
// and takes over. The lone broker does not lose its connections.
func cutLoneBroker(w *world) (func() (string, error), error) {
	lone, err := w.stopOthers()
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
		return proof, w.startAll()
	}, err
}

// cutLoneServer cuts off the lone broker's server from the other servers. The broker stays connected to its server.
func cutLoneServer(w *world) (func() (string, error), error) {
	lone, err := w.stopOthers()
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
	time.Sleep(electionTime)
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
		return proof, w.startAll()
	}, err
}
