package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/engine"
	"delaybroker/broker/journal"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams/provision"
)

// Broker moves delayed messages from lane to lane and to their targets. New creates a broker, and Run runs it.
type Broker struct {
	id            string   // name of this instance
	users         []string // user names of the connections; empty if unknown
	cfg           Config
	names         message.Names
	keys          *provision.Keyring
	streams       *provision.Builder
	links         Links
	linkStates    *link.States
	settings      map[string]string // see config.Config.Digests
	linkAnswers   *link.Answers
	denials       link.Denials
	jetstream     *link.JetStream     // on links.Control
	readJetStream jetstream.JetStream // on links.Read
	leaser        lease.Leaser
	figures       figures
	engine        *engine.Engine
	tally         *stats.Tally
	journalWriter atomic.Pointer[journal.Writer] // nil before Run, and without a journal
	pauses        pauseControl
	log           *slog.Logger
	startTime     time.Time // when New created the broker

	draining atomic.Bool
	stop     chan error // why this instance must stop; capacity 1
}

// Config is the configuration of a broker.
type Config = config.Config

// Ended describes a message that was delivered or became a dead letter: see Config.Ended.
type Ended = config.Ended

// Streams are the streams that a configuration needs.
type Streams = provision.Streams

// StreamsOf returns the streams that a configuration needs. It checks the configuration as New does.
func StreamsOf(cfg Config) (Streams, error) { return provision.StreamsOf(cfg) }

// New checks the configuration and starts nothing. For an invalid configuration it returns a config.FieldErrors, which
// wraps ErrConfig.
func New(links Links, cfg Config) (*Broker, error) {
	streams, err := StreamsOf(cfg)
	if err != nil {
		return nil, err
	}
	cfg = streams.Config()
	js, err := jetstream.NewWithAPIPrefix(links.Control, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("create the JetStream client of the control connection: %w", err)
	}
	readJS, err := jetstream.NewWithAPIPrefix(links.Read, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("create the JetStream client of the read connection: %w", err)
	}
	b := &Broker{
		cfg: cfg, names: streams.Policy().Names, keys: streams.Keys(), streams: streams.NewBuilder(links.Control, js),
		links: links, linkStates: link.NewStates(links), readJetStream: readJS,
		jetstream: link.NewJetStream(js, jsapi.Client{Conn: links.Control, API: cfg.APIPrefix}),
		users:     links.Users(), log: cfg.Log, startTime: time.Now(), tally: stats.NewTally(cfg.Rates),
		stop: make(chan error, 1), settings: cfg.Digests(),
	}
	ask := cfg.APIPrefix + ".STREAM.INFO." + b.names.IntakeStream()
	b.linkAnswers = link.NewAnswers(links, ask, cfg.Log)
	b.pauses = pauseControl{Keeper: b.newKeeper(), loggedStates: make(map[string]pause.State)}
	b.leaser, b.id = b.newLeaser()
	b.engine = engine.New(engine.Config{
		Settings: cfg, Keys: b.keys, JetStream: b.jetstream, Links: b.linkStates, Leaser: b.leaser, Pauses: b.pauses.Keeper,
		Tally: b.tally, Denials: &b.denials, Read: links.Read, Reading: readJS,
	})
	return b, nil
}

// Run prepares the streams, and moves messages until ctx ends or the broker must stop. Then Run drains. While JetStream
// does not answer, Run waits for JetStream. Run returns these errors, among others:
//
//   - ErrDrift or an error of package streams, such as ErrMissingStreams, if it cannot use the streams;
//   - ErrSecret if the streams keep no secret and none is configured;
//   - lease.ErrNameInUse if an older instance has the same name;
//   - ErrGrace if the drain took too long.
func (b *Broker) Run(ctx context.Context) error {
	defer b.noteDenials()()
	lanes, err := b.streams.Start(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	write, err := acks.New(b.links.Write, link.Inbox(b.links.Write))
	if err != nil {
		return fmt.Errorf("subscribe to the acknowledgements of the lanes' streams: %w", err)
	}
	targets, err := acks.New(b.links.Deliver, link.Inbox(b.links.Deliver))
	if err != nil {
		return fmt.Errorf("subscribe to the answers of targets: %w", err)
	}
	cfg := b.cfg
	window, windowBytes := engine.Window(cfg.HoldMessages, cfg.HoldBytes, len(lanes))
	deliverer := deliver.New(targets, b.jetstream.API, deliver.Config{
		Modes: cfg.Deliver, Limits: deliver.Limits{ByTarget: cfg.Rates, ByKey: cfg.RatesByKey},
		InProgress: deliver.InProgress{ByTarget: cfg.InProgress, ByKey: cfg.InProgressByKey}, Counts: b.tally.Targets,
		ReplyTimeout: cfg.ReplyTimeout, Ours: b.names.OwnsStream,
		Window: window, WindowBytes: windowBytes, Log: b.log,
	})
	defer listenToErrors(b.links.Deliver, deliverer.NoteError)()
	deliverer.NoteError(b.links.Deliver.LastError()) // listenToErrors does not pass on earlier errors
	b.linkStates.Refresh()
	b.pauses.deliverer = deliverer
	b.pauses.Load(ctx)

	// The engine's workers use these services, so the services end after the workers.
	defer b.keys.Wait()
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	var services sync.WaitGroup
	defer services.Wait()
	defer stop()
	for _, run := range []func(context.Context){
		write.Run, targets.Run, deliverer.Run, b.watchLinks, b.watchJetStream, b.watchPayload, b.answer, b.leaser.Run,
		b.pauses.Run, b.recordHistory,
	} {
		services.Go(func() { run(base) })
	}
	if cfg.Leaser == nil {
		services.Go(func() { b.linkAnswers.Run(base) })
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	services.Go(func() {
		select {
		case err := <-b.stop:
			cancel(stopCause{err})
		case <-base.Done():
		}
	})
	records, closeJournal := b.startJournal(base, write)
	defer closeJournal() // after the workers end, and before write.Run ends
	defer context.AfterFunc(ctx, func() {
		b.draining.Store(true)
		records.BeginStop()
		deliverer.Drain()
	})()
	timers := b.timers(write)
	waitForAnswers := b.answerRequests(ctx, lanes, timers)
	err = b.engine.Run(ctx, lanes, engine.Services{
		Write: write, Deliver: deliverer, Timers: timers, Journal: records,
	})
	waitForAnswers()
	if cause, ok := errors.AsType[stopCause](context.Cause(ctx)); ok {
		err = errors.Join(cause.error, err)
	}
	return err
}

// noteDenials records for operators which permissions the connections lack, until stop is called. It ignores a denied
// publish on a subject that is neither the broker's own nor in the JetStream API. Such a subject is usually a target,
// and the refused message keeps the denial as its reason.
func (b *Broker) noteDenials() (stop func()) {
	var stops []func()
	b.links.Each(func(name string, nc *nats.Conn) {
		stops = append(stops, listenToErrors(nc, func(err error) {
			subject, publish := jsapi.RefusedSubject(err)
			root, _, _ := strings.Cut(subject, ".")
			if !publish || slices.Contains(b.names.Roots(), root) || strings.HasPrefix(subject, b.cfg.APIPrefix+".") {
				b.denials.Note(name, time.Now(), err)
			}
		}))
	})
	return func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

// StreamConfigs returns the current configurations of all streams of the broker that store clients' messages, including
// dead letters.
func (b *Broker) StreamConfigs(ctx context.Context) ([]jetstream.StreamConfig, error) {
	return b.streams.Configs(ctx)
}

// Ready returns a channel that is closed when this instance reads each lane, or another instance is active.
func (b *Broker) Ready() <-chan struct{} { return b.engine.Ready() }

// stopCause is the cause of a stop that no caller requested.
type stopCause struct{ error }

// quit lets Run drain and return err. It may be called on any goroutine.
func (b *Broker) quit(err error) {
	select {
	case b.stop <- err:
	default: // the instance is already stopping
	}
}

// listenToErrors calls f with each asynchronous error of a connection, and then the previous handler. The returned
// function ends that: only the previous handler is called again.
func listenToErrors(nc *nats.Conn, f func(error)) (stop func()) {
	previous := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		f(err)
		if previous != nil {
			previous(nc, sub, err)
		}
	})
	return func() { nc.SetErrorHandler(previous) }
}
