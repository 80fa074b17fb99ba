//go:build linux

package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/fault/history"
)

// publishers is the number of publishers, each connected to a different server if possible. players is the usual number
// of players, which set named timers and let clients change them (see player).
const publishers, players = 3, 6

// world has all processes and clients of a run.
type world struct {
	dir     string // directory of data and logs
	plan    plan
	rand    *rand.Rand
	log     *history.Log
	cluster cluster
	brokers []*broker
	js      jetstream.JetStream // the administrator's
	gate    gate

	accepted   atomic.Int64 // number of acknowledged publishes
	links      []*nats.Conn
	publishing sync.WaitGroup
	stop       chan struct{} // closed to end publishers, players and the attacker
}

// newWorld starts the servers, creates the target's stream, and then starts the brokers, witnesses and clients.
func newWorld(p plan, dir string) (*world, error) {
	w := &world{dir: dir, plan: p, rand: rand.New(rand.NewPCG(p.seed, 1)), log: new(history.Log),
		stop: make(chan struct{})}
	return w, w.start(p)
}

func (w *world) start(p plan) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	users, err := tenantUsers()
	if err != nil {
		return err
	}
	if w.cluster, err = newCluster(w.dir, p.programs.server, p.quota(), users); err != nil {
		return err
	}
	if err := w.cluster.start(); err != nil {
		return err
	}
	nc, err := w.connect(w.cluster.urls(0), "administrator")
	if err != nil {
		return err
	}
	if w.js, err = jetstream.New(nc); err != nil {
		return err
	}
	if err := w.createTarget(ctx); err != nil {
		return fmt.Errorf("create the target's stream: %w", err)
	}
	if err := w.startBrokers(p); err != nil {
		return err
	}
	w.log.Add(history.Event{Op: history.Run, Conditions: p.conditions(w.cluster)})
	for _, b := range w.brokers {
		b.events = w.log // records the restarts; the first start also created the streams, and so took longer
	}
	for _, s := range w.cluster {
		if err := w.witness(s); err != nil {
			return fmt.Errorf("witness on %s: %w", s.name, err)
		}
	}
	return w.startClients(ctx, p)
}

func (w *world) startBrokers(p plan) error {
	for i := range p.brokers {
		b, err := newBroker(w.dir, p.programs.broker, i+1, w.cluster, p.ladder.levels)
		if err != nil {
			return err
		}
		if p.players > 0 {
			b.env = append(b.env, "DELAY_TIMERS=on")
			if p.noHistory {
				b.env = append(b.env, "DELAY_TIMER_HISTORY=none")
			}
		}
		if p.home > 0 {
			b.stayAt(w.cluster[p.home-1])
		}
		w.brokers = append(w.brokers, b)
		if err := b.run(); err != nil {
			return err
		}
	}
	return nil
}

// startClients starts the publishers, the players, and the attacker if the plan has one.
func (w *world) startClients(ctx context.Context, p plan) error {
	for i := range publishers {
		name := fmt.Sprintf("p%d", i)
		nc, err := w.connect(w.cluster.urls(i), name)
		if err != nil {
			return err
		}
		publisher, err := newPublisher(name, nc, w, p.seed+uint64(i))
		if err != nil {
			return err
		}
		w.publishing.Go(func() { publisher.run(p.rate/publishers, w.stop) })
	}
	for i := range p.players {
		name := fmt.Sprintf("t%d", i)
		nc, err := w.connect(w.cluster.urls(i), name)
		if err != nil {
			return err
		}
		player, err := newPlayer(name, nc, w, p.seed+uint64(i))
		if err != nil {
			return err
		}
		w.publishing.Go(func() { player.run(w.stop) })
	}
	if p.attack {
		attacker, err := w.newTenant(ctx)
		if err != nil {
			return err
		}
		w.publishing.Go(func() { attacker.attack(w.stop) })
	}
	return nil
}

// connect opens a connection that survives every fault. A publish that cannot be sent immediately fails, and is not
// sent later.
func (w *world) connect(urls, name string, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{nats.Name(name), nats.MaxReconnects(-1), nats.DontRandomize(),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 0), nats.ReconnectBufSize(-1), nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, more...)
	nc, err := nats.Connect(urls, options...)
	if err != nil {
		return nil, fmt.Errorf("connect the %s: %w", name, err)
	}
	w.links = append(w.links, nc)
	return nc, nil
}

func (w *world) inject(f fault) error {
	w.log.Add(history.Event{Op: history.Fault, Phase: history.Invoke, Text: f.name})
	heal, err := f.inject(w)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	time.Sleep(f.hold)
	proof, err := heal()
	if err != nil {
		return fmt.Errorf("heal %s: %w", f.name, err)
	}
	restarted, err := w.cluster.recover()
	if err != nil {
		return fmt.Errorf("after %s: %w", f.name, err)
	}
	if len(restarted) > 0 {
		proof += ", and these servers caught up only after a restart: " + strings.Join(restarted, " ")
	}
	for _, b := range w.brokers {
		if err := b.awaitReady(); err != nil { // the run continues: the history shows the lost and the late messages
			w.addViolation("after %s: %v", f.name, err)
		}
	}
	w.log.Add(history.Event{Op: history.Fault, Phase: history.OK, Text: proof})
	w.log.Add(history.Event{Op: history.Fault, Phase: history.Healed, Text: f.name})
	return nil
}

// finish stops publishing, waits until all lanes are empty, records the deliveries and the dead letters, and stops the
// brokers. A marker is a message in a level, at whose due time the broker fires a timer. A timer that is due soon has
// no marker, so awaitRest may return before it fires.
func (w *world) finish() error {
	close(w.stop)
	w.publishing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), w.plan.rest()+2*bound+rounds*retimed)
	defer cancel()
	if err := w.awaitRest(ctx, w.plan.rest()); err != nil {
		return err
	}
	switch {
	case w.plan.players == 0:
	case w.plan.races: // these timers are due too soon for a marker
		if err := w.awaitTimers(ctx); err != nil {
			return err
		}
	default: // a round that is due soon has no marker: wait for all rounds of a series, and then look again
		time.Sleep(rounds * retimed)
		if err := w.awaitRest(ctx, w.plan.rest()); err != nil {
			return err
		}
	}
	time.Sleep(time.Second) // so that late duplicates arrive
	if err := w.readTarget(ctx); err != nil {
		return err
	}
	if err := w.readDead(ctx); err != nil {
		return err
	}
	for _, b := range w.brokers {
		if _, err := b.terminate(); err != nil {
			w.addViolation("a clean stop: %v", err)
		}
	}
	return w.checkLogs()
}

// addViolation records a violation that the judge cannot see in the other events.
func (w *world) addViolation(format string, args ...any) {
	w.log.Add(history.Event{Op: history.Broken, Text: fmt.Sprintf(format, args...)})
}

// checkLogs compares the brokers' log lines about replaced streams with the faults. A broker that wrongly detects a
// replaced stream delivers messages again, and the faults of the run may excuse these duplicates. If a stream was
// replaced, some broker must log it; otherwise the log line has changed and this check is ineffective.
func (w *world) checkLogs() error {
	said := 0
	for _, b := range w.brokers {
		text, err := os.ReadFile(b.process.log)
		if err != nil {
			return err
		}
		said += bytes.Count(text, []byte("the stream has another history"))
	}
	replaced := slices.ContainsFunc(w.plan.faults, func(f fault) bool { return f.replaces })
	switch {
	case said > 0 && !replaced:
		w.addViolation("brokers logged %d times that a stream has another history, but no stream was replaced", said)
	case said == 0 && replaced:
		w.addViolation("a stream was replaced, but no broker logged this")
	}
	return nil
}

func (w *world) end() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	for _, nc := range w.links {
		nc.Close()
	}
	w.publishing.Wait()
	for _, b := range w.brokers {
		b.end()
	}
	w.cluster.end()
}

// save writes the history to a file beside the logs and the data, and returns its path.
func (w *world) save() (string, error) {
	path := filepath.Join(w.dir, "history.jsonl")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(history.Write(f, w.log.Events()), f.Close())
}
