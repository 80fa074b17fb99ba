package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/budget"
	"delaybroker/broker/deliver"
	"delaybroker/broker/journal"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/muster"
	"delaybroker/broker/outbox"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/timer"
)

// apiTimeout is how long the JetStream API may take to answer.
const apiTimeout = 5 * time.Second

// Broker moves delayed messages from lane to lane and to their targets. Make one with New; Run does the work.
type Broker struct {
	id        string // unique among the instances that run
	streams   Streams
	conns     Links
	links     *linkStates
	jetstream *jetStream          // on the control link
	reading   jetstream.JetStream // on the read link
	leaser    lease.Leaser
	muster    muster.Muster
	tally     *tally
	roster    roster
	pauses    pausing
	log       *slog.Logger

	ready    chan struct{} // closed when every lane this instance owns is being read
	draining atomic.Bool
	stop     chan error // one slot: why this instance must stop
}

// New checks the configuration and starts nothing. Its error joins one ErrConfig for each problem.
func New(links Links, cfg Config) (*Broker, error) {
	streams, err := StreamsOf(cfg)
	if err != nil {
		return nil, err
	}
	cfg = streams.cfg
	js, err := jetstream.NewWithAPIPrefix(links.Control, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("JetStream for control: %w", err)
	}
	reading, err := jetstream.NewWithAPIPrefix(links.Read, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("JetStream for reading: %w", err)
	}
	b := &Broker{
		streams: streams, conns: links, links: newLinkStates(links), reading: reading, log: cfg.Log, tally: newTally(),
		jetstream: newJetStream(js, jsapi.Client{Conn: links.Control, API: cfg.APIPrefix}),
		ready:     make(chan struct{}), stop: make(chan error, 1),
	}
	b.pauses.Keeper = b.newKeeper()
	streams.keys.find = func(ctx context.Context) ([]layout.Spec, error) {
		found, _, err := streams.Provisioner(js).Find(ctx)
		return found, err
	}
	b.leaser = b.newLeaser()
	b.id = instanceOf(b.leaser)
	return b, nil
}

// Run brings the streams into being and works until ctx ends; then it drains and returns nil. It returns ErrDrift or
// layout.ErrMissingStreams when the streams are not fit for a start, lease.ErrNamesake when an older instance has the
// same name, and ErrGrace when the drain took too long. While JetStream does not answer, at the start or later, it
// waits.
func (b *Broker) Run(ctx context.Context) error {
	lanes, err := b.start(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	write, err := outbox.New(b.conns.Write, inboxOf(b.conns.Write))
	if err != nil {
		return fmt.Errorf("listen for the answers of lanes: %w", err)
	}
	targets, err := outbox.New(b.conns.Deliver, inboxOf(b.conns.Deliver))
	if err != nil {
		return fmt.Errorf("listen for the answers of targets: %w", err)
	}
	cfg := b.streams.cfg
	room := budget.New(cfg.HoldBytes, len(lanes))
	deliverer := deliver.New(targets, b.jetstream.api, deliver.Config{
		Modes: cfg.Deliver, Rates: cfg.Rates, ReplyTimeout: cfg.ReplyTimeout, Ours: b.streams.names.Own,
		// Half of the messages and bytes that a lane may hold: see full.
		Window: min(cfg.HoldMessages, room.Most()/2/flightOverhead), WindowBytes: room.Most() / 2, Log: b.log,
	})
	defer listenToErrors(b.conns.Deliver, deliverer.Heard)()
	deliverer.Heard(b.conns.Deliver.LastError()) // the last error before we listened
	b.links.look()
	b.pauses.begin(ctx, deliverer)

	// The services that the workers use outlive the workers.
	defer b.streams.keys.wg.Wait()
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	var services sync.WaitGroup
	defer services.Wait()
	defer stop()
	for _, run := range []func(context.Context){
		write.Run, targets.Run, deliverer.Run, b.watchLinks, b.watchJetStream, b.answer, b.leaser.Run, b.pauses.Run,
	} {
		services.Go(func() { run(base) })
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	services.Go(func() {
		select {
		case err := <-b.stop:
			cancel(stopped{err})
		case <-base.Done():
		}
	})
	records, closeJournal := b.keepJournal(base, write)
	defer closeJournal() // after the workers, before the outbox
	release := context.AfterFunc(ctx, func() { b.drain(deliverer, records) })
	defer release()
	answered := b.control(ctx, lanes, write)
	err = b.work(ctx, lanes, room, b.instance(write, deliverer, records))
	answered()
	if why := (stopped{}); errors.As(context.Cause(ctx), &why) {
		err = errors.Join(why.error, err)
	}
	return err
}

// instance is what the workers share.
func (b *Broker) instance(write *outbox.Outbox, deliverer *deliver.Deliverer, records *journal.Writer) *instance {
	cfg := b.streams.cfg
	return &instance{
		id: b.id, claims: new(timer.Claims), patience: b.patience,
		sweeping: scanner{b.conns.Read, b.reading, cfg.APIPrefix},
		names:    b.streams.names, keys: b.streams.keys, jetstream: b.jetstream, write: write, deliver: deliverer,
		links: b.links, muster: &b.muster, tally: b.tally, holdMessages: cfg.HoldMessages, grace: cfg.ShutdownGrace,
		refusals: ratelog.NewKeyed(b.log, refusalsEvery, mostRefusing), journal: records, ended: cfg.Ended,
		pauses: b.pauses.Keeper,
	}
}

// drain begins a stop.
func (b *Broker) drain(deliverer *deliver.Deliverer, records *journal.Writer) {
	b.draining.Store(true)
	records.Stopping()
	deliverer.Drain()
}

// Ready is closed when every lane that this instance owns is being read.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// stopped is the cause of a stop that no caller asked for.
type stopped struct{ error }

// quit stops this instance cleanly. It may be called on any goroutine.
func (b *Broker) quit(err error) {
	select {
	case b.stop <- err:
	default: // it stops already
	}
}

// listenToErrors calls f with the asynchronous errors of a connection, besides the handler that is set already, until
// the returned function is called.
func listenToErrors(nc *nats.Conn, f func(error)) (stop func()) {
	others := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		f(err)
		if others != nil {
			others(nc, sub, err)
		}
	})
	return func() { nc.SetErrorHandler(others) }
}
