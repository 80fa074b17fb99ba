//go:build linux

package fault

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// fault is one thing that goes wrong.
type fault struct {
	name string
	// clean means that nothing excuses a copy.
	clean bool
	hold  time.Duration // between inject and heal
	// inject breaks something. What it returns puts it right again, and says what proves that it was broken.
	inject func(*world) (heal func() (proof string, err error), err error)
}

// The faults. Those that take longer than five seconds outlive the leases and the patience of everybody concerned.
var (
	brokerKilled   = fault{name: "broker killed", hold: 500 * time.Millisecond, inject: killBroker}
	brokerLost     = fault{name: "broker killed for longer", hold: 8 * time.Second, inject: killBroker}
	ownersLost     = fault{name: "broker and bucket leader killed", hold: 8 * time.Second, inject: killOwners}
	brokersKilled  = fault{name: "all brokers killed", hold: time.Second, inject: killBrokers}
	brokersRolling = fault{name: "brokers restarted in turn", clean: true, inject: rollBrokers}
	brokerStopped  = fault{name: "broker stopped for a while", clean: true, hold: time.Second, inject: stopBroker}
	brokerBlink    = fault{name: "broker paused shortly", hold: 1500 * time.Millisecond, inject: pauseBroker}
	brokerPaused   = fault{name: "broker paused", hold: 6 * time.Second, inject: pauseBroker}
	brokerCut      = fault{name: "broker cut off in silence", hold: 6 * time.Second, inject: cutBroker}
	brokerReset    = fault{name: "broker's connections dropped", hold: time.Second, inject: resetBroker}
	leaderKilled   = fault{name: "leader killed", hold: 2 * time.Second, inject: killLeader}
	serversKilled  = fault{name: "all servers killed", hold: 500 * time.Millisecond, inject: killServers}
	allKilled      = fault{name: "everything killed", hold: 500 * time.Millisecond, inject: killAll}
	serverPaused   = fault{name: "leader paused", hold: 6 * time.Second, inject: pauseLeader}
	serverCut      = fault{name: "leader cut off in silence", hold: 6 * time.Second, inject: cutLeader}
	serversRolling = fault{name: "servers restarted in turn", inject: rollServers}
	steppedDown    = fault{name: "all leaders stepped down", hold: time.Second, inject: stepDown}
	storeFull      = fault{name: "no room in the account", hold: 500 * time.Millisecond, inject: fillStore}
	laneReplaced   = fault{name: "the intake's stream replaced", hold: time.Second, inject: replaceIntake}
	idsForged      = fault{name: "ids of hops forged", inject: forgeIDs}

	allFaults = []fault{
		brokerKilled, brokerLost, ownersLost, brokersKilled, brokersRolling, brokerStopped, brokerBlink, brokerPaused, brokerCut, brokerReset,
		leaderKilled, serversKilled, allKilled, serverPaused, serverCut, serversRolling, steppedDown, storeFull, laneReplaced, idsForged,
	}
)

// faultsNamed finds faults by name.
func faultsNamed(names []string) ([]fault, error) {
	var found []fault
	for _, name := range names {
		i := slices.IndexFunc(allFaults, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
		found = append(found, allFaults[i])
	}
	return found, nil
}

// cleanFaults are those that excuse no copy.
func cleanFaults() []fault {
	return slices.DeleteFunc(slices.Clone(allFaults), func(f fault) bool { return !f.clean })
}

// faultsFor are those that so many brokers can have.
func faultsFor(brokers int) []fault {
	return slices.DeleteFunc(slices.Clone(allFaults), func(f fault) bool { return brokers == 1 && f.name == ownersLost.name })
}

func (w *world) anyBroker() *broker { return w.brokers[w.rand.IntN(len(w.brokers))] }

func killBroker(w *world) (func() (string, error), error) {
	b := w.anyBroker()
	proof, err := b.kill()
	return func() (string, error) { return proof, b.run() }, err
}

// killOwners kills a broker, and with it the server that leads the bucket in which brokers say what they own.
func killOwners(w *world) (func() (string, error), error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := w.leader(ctx, "DELAY_OWNERS")
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
	s, err := w.targetLeader()
	if err != nil {
		return nil, err
	}
	return cut(w.cluster.proxies(s)), nil
}

// cut holds back what proxies carry.
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
			p.set(passing)
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
			p.set(passing)
		}
		if dropped == 0 {
			return "", fmt.Errorf("%s had no connections", b.name)
		}
		return fmt.Sprintf("%s lost %d connections", b.name, dropped), nil
	}, nil
}

// targetLeader leads the stream that everything goes to.
func (w *world) targetLeader() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return w.leader(ctx, target)
}

func killLeader(w *world) (func() (string, error), error) {
	s, err := w.targetLeader()
	if err != nil {
		return nil, err
	}
	proof, err := s.kill()
	return func() (string, error) { return proof, s.start() }, err
}

func pauseLeader(w *world) (func() (string, error), error) {
	s, err := w.targetLeader()
	if err != nil {
		return nil, err
	}
	proof, err := s.pause()
	return func() (string, error) { return proof, s.resume() }, err
}

// killServers kills all of them at once, and starts them in another order.
func killServers(w *world) (func() (string, error), error) {
	for _, s := range w.cluster {
		if _, err := s.kill(); err != nil {
			return nil, err
		}
	}
	return func() (string, error) {
		for _, i := range w.rand.Perm(len(w.cluster)) {
			if err := w.cluster[i].start(); err != nil {
				return "", err
			}
			time.Sleep(300 * time.Millisecond)
		}
		return fmt.Sprintf("%d processes killed", len(w.cluster)), nil
	}, nil
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

func rollServers(w *world) (func() (string, error), error) {
	for _, s := range w.cluster {
		if _, err := s.terminate(); err != nil {
			return nil, err
		}
		if err := w.cluster.start(); err != nil {
			return nil, err
		}
	}
	return func() (string, error) { return fmt.Sprintf("%d processes stopped", len(w.cluster)), nil }, nil
}
