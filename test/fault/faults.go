//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	product "delaybroker/broker"
)

// This file has the faults of brokers, and those of all processes together.

func (w *world) anyBroker() *broker { return w.brokers[w.rand.IntN(len(w.brokers))] }

func killBroker(w *world) (func() (string, error), error) {
	b := w.anyBroker()
	proof, err := b.kill()
	return func() (string, error) { return proof, b.run() }, err
}

// killOwners kills a broker, and at the same time the server that leads the stream of the lanes' owners.
func killOwners(w *world) (func() (string, error), error) {
	s, err := w.leaderOf(bucket)
	if err != nil {
		return nil, err
	}
	b := w.anyBroker()
	first, err := b.kill()
	if err != nil {
		return nil, err
	}
	second, err := s.kill()
	return func() (string, error) {
		if err := s.start(); err != nil {
			return "", err
		}
		return first + "; " + second, b.run()
	}, err
}

func killBrokers(w *world) (func() (string, error), error) {
	for _, b := range w.brokers {
		if _, err := b.kill(); err != nil {
			return nil, err
		}
	}
	return func() (string, error) {
		for _, b := range w.brokers {
			if err := b.run(); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%d processes killed", len(w.brokers)), nil
	}, nil
}

func rollBrokers(w *world) (func() (string, error), error) {
	for _, b := range w.brokers {
		if _, err := b.terminate(); err != nil {
			return nil, err
		}
		if err := b.run(); err != nil {
			return nil, err
		}
	}
	return func() (string, error) { return fmt.Sprintf("%d processes stopped", len(w.brokers)), nil }, nil
}

func stopBroker(w *world) (func() (string, error), error) {
	b := w.anyBroker()
	proof, err := b.terminate()
	return func() (string, error) { return proof, b.run() }, err
}

func pauseBroker(w *world) (func() (string, error), error) {
	b := w.anyBroker()
	proof, err := b.pause()
	return func() (string, error) { return proof, b.resume() }, err
}

func cutBroker(w *world) (func() (string, error), error) {
	b := w.anyBroker()
	return cut(b.links), nil
}

func cutLeader(w *world) (func() (string, error), error) {
	s, err := w.leaderOf(target)
	if err != nil {
		return nil, err
	}
	return cut(w.cluster.proxies(s)), nil
}

// cut makes proxies hold their data back.
func cut(proxies []*proxy) func() (string, error) {
	before := int64(0)
	for _, p := range proxies {
		before += p.held.Load()
		p.set(holding)
	}
	return func() (string, error) {
		held := -before
		for _, p := range proxies {
			held += p.held.Load()
			p.restore()
		}
		if held == 0 {
			return "", fmt.Errorf("nothing was held back")
		}
		return fmt.Sprintf("%d proxies held %d bytes back", len(proxies), held), nil
	}
}

func resetBroker(w *world) (func() (string, error), error) {
	b := w.anyBroker()
	before := int64(0)
	for _, p := range b.links {
		before += p.killed.Load()
		p.set(refusing)
	}
	return func() (string, error) {
		dropped := -before
		for _, p := range b.links {
			dropped += p.killed.Load()
			p.restore()
		}
		if dropped == 0 {
			return "", fmt.Errorf("%s had no connections", b.name)
		}
		return fmt.Sprintf("%s lost %d connections", b.name, dropped), nil
	}, nil
}

// stopBehindReplica stops a broker while one replica of the lanes is paused, and starts the broker again when the
// replica resumes. The replica may then still show messages that were removed last. It leads no stream, and resumes
// before any request times out. Duplicates are excused, because leaders changed before the fault, and the broker may
// report possible duplicates. TestCleanStopBehindALaggingReplica covers the case without an excuse.
func stopBehindReplica(w *world) (func() (string, error), error) {
	slow := w.cluster[w.rand.IntN(len(w.cluster))]
	if err := w.stepDownFrom(slow); err != nil {
		return nil, err
	}
	paused, err := slow.pause()
	if err != nil {
		return nil, err
	}
	resumed := make(chan error, 1)
	// The stopping broker may be connected to the paused server.
	time.AfterFunc(1500*time.Millisecond, func() { resumed <- slow.resume() })
	b := w.anyBroker()
	stopped, err := b.terminate()
	if err != nil && strings.Contains(err.Error(), product.ErrGrace.Error()) {
		stopped, err = b.name+", stopped with unacknowledged messages", nil
	}
	if err := errors.Join(err, <-resumed); err != nil {
		return nil, err
	}
	err = b.run()
	return func() (string, error) { return paused + "; " + stopped, nil }, err
}

func (w *world) stepDownFrom(s *server) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return moveLeaders(ctx, w.js, nil, func(leader string) bool { return leader == s.name })
}

// moveLeaders makes the leaders of streams step down until no leader matches.
func moveLeaders(ctx context.Context, js jetstream.JetStream, request []byte, match func(leader string) bool) error {
	return retry(ctx, func(ctx context.Context) error {
		list := js.ListStreams(ctx)
		moved := 0
		for info := range list.Info() {
			if info.Cluster == nil || !match(info.Cluster.Leader) {
				continue
			}
			moved++
			api := "$JS.API.STREAM.LEADER.STEPDOWN." + info.Config.Name
			if _, err := js.Conn().RequestWithContext(ctx, api, request); err != nil {
				return err
			}
		}
		if moved > 0 {
			return fmt.Errorf("the leaders of %d streams had to step down", moved)
		}
		return list.Err()
	})
}

func killAll(w *world) (func() (string, error), error) {
	startServers, err := killServers(w)
	if err != nil {
		return nil, err
	}
	startBrokers, err := killBrokers(w)
	if err != nil {
		return nil, err
	}
	return func() (string, error) {
		if _, err := startServers(); err != nil {
			return "", err
		}
		_, err := startBrokers()
		return fmt.Sprintf("%d processes killed", len(w.cluster)+len(w.brokers)), err
	}, nil
}
