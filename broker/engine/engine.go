package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
)

const (
	// refusalLogInterval is the minimum interval between two log lines about the refusals of one target.
	refusalLogInterval = time.Minute
	// maxLoggedTargets is the maximum number of refusing targets that the log names in refusalLogInterval. Without this
	// maximum, targets whose subjects contain ids would fill the log.
	maxLoggedTargets = 64
)

// Engine runs a loop for each lane while this instance is active. Create an Engine with New, and start the loops with
// Run.
type Engine struct {
	Config
	names       message.Names
	log         *slog.Logger
	refusals    *ratelog.Keyed // logs the refusals of targets for all lanes; the key is the target
	watermark   watermark
	roster      roster
	watch       watch
	lateAnswers sync.WaitGroup // the workers that wait for answers after the release of the lease
	ownsPaused  atomic.Bool    // this instance drains the stream of paused messages
	ready       chan struct{}  // see Ready

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
	Denials   *link.Denials // permissions that the server has denied to the links

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
		watch:    watch{pausesPing: make(chan struct{})},
		refusals: ratelog.NewKeyed(log, refusalLogInterval, maxLoggedTargets),
	}
}

// Run runs the loops until ctx ends, whenever this instance is active. At the end, it waits for outstanding answers,
// and commits the lanes, so that the next active instance repeats no delivery. Run must be called only once. Its error
// joins the errors with which the lanes ended: ErrGrace, and the errors of failed final commits and of a failed release
// of the lease.
func (e *Engine) Run(ctx context.Context, lanes []streams.Spec, s Services) error {
	e.Services, e.budget = s, newBudget(e.Settings.HoldBytes, len(lanes)+maxDrains-1)
	for _, l := range lanes {
		e.roster.countOf(l)
	}
	return e.serve(ctx, lanes, sync.OnceFunc(func() { close(e.ready) }))
}

// Ready returns a channel that is closed when this instance reads every lane, or another instance is active. The
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

// Lanes returns the states of all lanes, in the order of streams.CompareLanes. It waits for no loop, and sends no
// request.
func (e *Engine) Lanes() []stats.LaneStatus {
	var lanes []stats.LaneStatus
	now, active := time.Now(), e.Leaser.Active()
	workers := make(map[string][]*worker) // the pauses are several workers of one stream
	for _, w := range e.roster.running() {
		workers[w.lane.Stream] = append(workers[w.lane.Stream], w)
	}
	for _, c := range e.roster.allCounts() {
		l := c.Read()
		l.Owner = active
		for _, w := range workers[l.Stream] {
			l.Owned, l.InDoubt, l.Live = true, !w.lease.Held(), w.reading.Live() != 0
			w.gauge.Fill(&l, now)
			l.Fault = cmp.Or(l.Fault, e.faultOf(w, l, now))
		}
		if l.Stream == e.names.PausedStream() { // one stream with the lanes of all pauses
			l.Owned, l.Live, l.Level = e.ownsPaused.Load(), e.ownsPaused.Load(), ""
			l.Pending = e.Pauses.ParkedMessages()
		}
		l.Unworked = e.watch.unworked(l.Stream, now)
		lanes = append(lanes, l)
	}
	return lanes
}

// Alive returns nil if the loops of all lanes respond before ctx ends. It does not check NATS.
func (e *Engine) Alive(ctx context.Context) error {
	var stuck []error
	for stream, ok := range e.ping(ctx) {
		if !ok {
			stuck = append(stuck, fmt.Errorf("the loop of %s is stuck", stream))
		}
	}
	return errors.Join(stuck...)
}
