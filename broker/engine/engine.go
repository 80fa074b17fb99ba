package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/journal"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer/role"
	"delaybroker/levels"
)

const (
	// refusalLogInterval is the minimum interval between two log lines about the refusals of one target.
	refusalLogInterval = time.Minute
	// maxLoggedTargets is the maximum number of refusing targets that the log names in refusalLogInterval. Without this
	// maximum, targets whose subjects contain ids would fill the log.
	maxLoggedTargets = 64
)

// Engine runs a loop for each lane that this instance owns. Create an Engine with New, and start the loops with Run.
type Engine struct {
	Config
	names      message.Names
	log        *slog.Logger
	refusals   *ratelog.Keyed // logs the refusals of targets for all lanes; the key is the target
	watermark  watermark
	roster     roster
	ownsPaused atomic.Bool   // this instance owns the stream of paused messages
	ready      chan struct{} // see Ready

	Services         // set by Run before the first loop starts
	budget   *budget // set by Run
}

// Config holds the values that an engine shares with the program around it.
type Config struct {
	Settings  config.Config
	Keys      *provision.Keyring
	JetStream *link.JetStream
	Links     *link.States
	Leaser    lease.Leaser
	Pauses    *pause.Keeper
	Tally     *stats.Tally

	Read    *nats.Conn          // the connection on which lanes are read
	Reading jetstream.JetStream // on the connection Read
}

// Services are the parts that lanes publish and deliver with. The caller keeps them running until Run has returned.
type Services struct {
	Write   *acks.Inbox
	Deliver Deliverer
	Timers  *role.Stream
	Journal *journal.Writer // nil without a journal
}

// New returns an engine. It starts no goroutine.
func New(cfg Config) *Engine {
	log := cfg.Settings.Log
	return &Engine{
		Config: cfg, names: cfg.Keys.Policy.Names, log: log, ready: make(chan struct{}),
		refusals: ratelog.NewKeyed(log, refusalLogInterval, maxLoggedTargets),
	}
}

// Run runs the loops until ctx ends. Then it waits for outstanding answers, and commits the lanes, so that the next
// owners repeat no delivery. Run must be called only once. Its error joins the errors with which the lanes ended:
// ErrGrace, and the errors of failed final commits and of failed releases of leases.
func (e *Engine) Run(ctx context.Context, lanes []streams.Spec, s Services) error {
	e.Services, e.budget = s, newBudget(e.Settings.HoldBytes, len(lanes))
	errs := make([]error, len(lanes))
	var starting, running sync.WaitGroup
	e.watermark.Expect(len(lanes))
	for n, l := range lanes {
		starting.Add(1)
		running.Go(func() { errs[n] = e.serve(ctx, l, sync.OnceFunc(starting.Done)) })
	}
	running.Go(func() {
		if starting.Wait(); ctx.Err() == nil {
			close(e.ready)
		}
	})
	running.Wait()
	return errors.Join(errs...)
}

// Ready returns a channel that is closed when every lane is being read by this instance or owned by another one. The
// channel stays open if Run's context ends first.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Wake wakes the loop of every lane. The caller calls Wake when a connection is restored, so that due messages are sent
// immediately.
func (e *Engine) Wake() {
	for _, w := range e.roster.running() {
		w.mail.Put(reconnected{})
	}
}

// Probe makes the readers of all lanes check that their consumers still exist.
func (e *Engine) Probe() {
	for _, w := range e.roster.running() {
		w.reading.Probe()
	}
}

// Owns reports whether an instance owns at least one lane, as far as this instance knows.
func (e *Engine) Owns(instance string) bool {
	return slices.ContainsFunc(e.roster.allCounts(), func(l *stats.LaneCounts) bool {
		return e.Leaser.Owner(l.Spec.Stream) == instance
	})
}

// works reports whether this instance runs the loop of a level. Until Ready's channel is closed, works returns true for
// every level: this instance may be the only one, and may be about to start the loop.
func (e *Engine) works(l levels.Level) bool {
	select {
	case <-e.ready:
		return e.roster.works(e.names.LevelStream(l.Name))
	default:
		return true
	}
}

// Lanes returns the states of all lanes, including those that other instances own. It waits for no loop, and sends no
// request.
func (e *Engine) Lanes() []stats.LaneStatus {
	var lanes []stats.LaneStatus
	now := time.Now()
	owned := make(map[string]*worker)
	for _, w := range e.roster.running() {
		owned[w.lane.Stream] = w
	}
	for _, c := range e.roster.allCounts() {
		l := c.Read()
		l.Owner = e.Leaser.Owner(l.Stream)
		if w := owned[l.Stream]; w != nil {
			l.Owned, l.InDoubt, l.Live = true, !w.lease.Held(), w.reading.Live() != 0
			w.gauge.Fill(&l, now)
		}
		if l.Stream == e.names.PausedStream() { // one stream with the lanes of all pauses
			l.Owned, l.Live, l.Level = e.ownsPaused.Load(), e.ownsPaused.Load(), ""
			l.Pending = e.Pauses.ParkedMessages()
		}
		lanes = append(lanes, l)
	}
	slices.SortFunc(lanes, stats.CompareLanes)
	return lanes
}

// Alive returns nil if the loop of every lane responds before ctx ends. It does not check NATS.
func (e *Engine) Alive(ctx context.Context) error {
	workers := e.roster.running()
	stuck := make([]error, len(workers))
	var asking sync.WaitGroup
	for i, w := range workers {
		asking.Go(func() { // concurrently: one blocked loop must not use up the time for the others
			select {
			case w.ping <- struct{}{}:
			case <-w.ended:
			case <-ctx.Done():
				stuck[i] = fmt.Errorf("the loop of %s is stuck", w.lane.Stream)
			}
		})
	}
	asking.Wait()
	return errors.Join(stuck...)
}
