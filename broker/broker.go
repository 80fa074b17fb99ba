package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/broker/outbox"
	"delaybroker/wheel"
)

const (
	apiTimeout = 5 * time.Second
	// startPause is how long to wait for a JetStream that does not answer yet.
	startPause = time.Second
	// leaderPatience is how long to wait for streams that have no leader. An election takes up to 9 s; a stream that has lost
	// its majority must not keep the others from being served.
	leaderPatience = 15 * time.Second
	// startRemind is how often the log says so.
	startRemind = 10 * time.Second
	// doubtEvery is how often all consumers are looked after because some stream answers again.
	doubtEvery = 10 * time.Second
)

// Broker moves delayed messages from lane to lane and to their targets. Make one with New; Run does the work.
type Broker struct {
	*engine
	id       string        // unique among the instances that run
	ready    chan struct{} // closed when every lane this instance owns is being read
	draining atomic.Bool

	mu      sync.Mutex // guards what follows
	workers []*worker
	counts  []*laneCount // one for each lane
}

// engine is what all workers share. It does not change after New, except for what Run makes, and for what is
// known of JetStream.
type engine struct {
	cfg     Config
	links   Links
	names   message.Names
	policy  message.Policy
	js      jetstream.JetStream // on the control link
	reading jetstream.JetStream // on the read link
	api     jsapi.Client        // likewise
	log     *slog.Logger
	write   *outbox.Outbox
	tally   *tally
	deliver Deliverer
	leaser  lease.Leaser
	secrets secrets
	wg      sync.WaitGroup // questions that no worker waits for; Run does
	budget  *budget

	muster muster // of the lanes that are worked
	// The state of connections. Kept by watchLinks.
	writing, delivering, controlling *linkState

	away atomic.Bool   // JetStream left a question without an answer
	back chan struct{} // one slot: it answers again

	stop chan error // one slot: why this instance must stop
}

// New checks the configuration and starts nothing. Its error joins one ErrConfig for each problem.
func New(links Links, cfg Config) (*Broker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	names, err := message.NewNames(cfg.Prefix)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.NewWithAPIPrefix(links.Control, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("JetStream for control: %w", err)
	}
	reading, err := jetstream.NewWithAPIPrefix(links.Read, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("JetStream for reading: %w", err)
	}
	e := &engine{
		cfg: cfg, links: links, names: names, js: js, reading: reading, log: cfg.Log, back: make(chan struct{}, 1), stop: make(chan error, 1),
		policy: cfg.policy(names), tally: newTally(), api: jsapi.Client{Conn: links.Control, API: cfg.APIPrefix},
	}
	e.writing, e.delivering, e.controlling = &linkState{conn: links.Write}, &linkState{conn: links.Deliver}, &linkState{conn: links.Control}
	e.leaser = e.newLeaser()
	return &Broker{engine: e, id: instanceOf(e.leaser), ready: make(chan struct{})}, nil
}

// Run brings the streams into being and works until ctx ends; then it drains and returns nil. It returns ErrDrift or
// layout.ErrMissingStreams when the streams are not fit to begin with, lease.ErrNamesake when it has the name of an elder
// instance, and ErrGrace when the drain took too long. While JetStream does not answer, at the start or later, it waits.
func (b *Broker) Run(ctx context.Context) error {
	lanes, err := b.start(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	b.budget = newBudget(b.cfg.HoldBytes, len(lanes))
	if b.write, err = outbox.New(b.links.Write, inboxOf(b.links.Write)); err != nil {
		return fmt.Errorf("listen for the answers of lanes: %w", err)
	}
	targets, err := outbox.New(b.links.Deliver, inboxOf(b.links.Deliver))
	if err != nil {
		return fmt.Errorf("listen for the answers of targets: %w", err)
	}
	deliverer := deliver.New(targets, b.api, deliver.Config{
		Modes: b.cfg.Deliver, Rates: b.cfg.Rates, ReplyTimeout: b.cfg.ReplyTimeout, Ours: b.names.Own,
		// Half of what a lane may hold: see full.
		Window: min(b.cfg.HoldMessages, b.budget.most()/2/heldOverhead), WindowBytes: b.budget.most() / 2, Log: b.log,
	})
	b.deliver = deliverer
	defer listenToErrors(b.links.Deliver, deliverer.Heard)()
	deliverer.Heard(b.links.Deliver.LastError()) // what came before we listened

	// What the workers lean on outlives them.
	defer b.wg.Wait()
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	var leaning sync.WaitGroup
	leaning.Go(func() { b.write.Run(base) })
	leaning.Go(func() { targets.Run(base) })
	leaning.Go(func() { deliverer.Run(base) })
	defer leaning.Wait()
	defer stop()

	for _, l := range []*linkState{b.writing, b.delivering, b.controlling} {
		l.up.Store(l.conn.IsConnected())
	}
	leaning.Go(func() { b.watchLinks(base) })
	leaning.Go(func() { b.answer(base) })
	leaning.Go(func() { b.leaser.Run(base) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leaning.Go(func() {
		select {
		case err := <-b.stop:
			cancel(stopped{err})
		case <-base.Done():
		}
	})
	release := context.AfterFunc(ctx, func() {
		b.draining.Store(true)
		deliverer.Drain()
	})
	defer release()
	err = b.work(ctx, lanes)
	if why := (stopped{}); errors.As(context.Cause(ctx), &why) {
		err = errors.Join(why.error, err)
	}
	return err
}

// stopped is the cause of a stop that nobody asked for.
type stopped struct{ error }

// quit stops this instance cleanly. It may be called on any goroutine.
func (e *engine) quit(err error) {
	select {
	case e.stop <- err:
	default: // it stops already
	}
}

// listenToErrors lets f hear the asynchronous errors of a connection, besides whoever hears them already, until the
// function returned is called.
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

// start provisions, and waits for a JetStream that does not answer.
func (b *Broker) start(ctx context.Context) ([]layout.Spec, error) {
	began := time.Now()
	var said time.Time
	for {
		lanes, err := b.provision(ctx, time.Since(began) < leaderPatience)
		if err == nil || ctx.Err() != nil {
			return lanes, nil
		}
		if !isTransient(err) {
			return nil, fmt.Errorf("prepare the streams: %w", err)
		}
		if now := time.Now(); said.IsZero() || now.Sub(said) >= startRemind {
			said = now
			b.log.Warn(startTrouble(err), "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(startPause):
		}
	}
}

// startTrouble says what an error at the start means. That nobody listens where the JetStream API should be is no outage,
// or not one that ends by itself.
func startTrouble(err error) string {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return "JetStream is off: start nats-server with -js, or enable it for this account; trying again"
	}
	return "JetStream does not answer; trying again"
}

// codeNoPeers is nats-server's JSClusterNoPeersErrF. It also means a cluster that is too small, which time does not heal;
// the description tells them apart.
const codeNoPeers = 10005

// isTransient reports whether time may heal an error of the JetStream API: no answer, no leader, no connection.
func isTransient(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, jetstream.ErrNoStreamResponse, layout.ErrAway,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code == 503 || api.ErrorCode == codeNoPeers && strings.Contains(api.Description, ", peer offline"))
}

// work runs one worker for each lane until ctx ends.
func (b *Broker) work(ctx context.Context, lanes []layout.Spec) error {
	errs := make([]error, len(lanes))
	var settled, all sync.WaitGroup
	b.muster.expect(len(lanes))
	for i, l := range lanes {
		settled.Add(1)
		all.Go(func() { errs[i] = b.serve(ctx, l, sync.OnceFunc(settled.Done)) })
	}
	all.Go(func() {
		if settled.Wait(); ctx.Err() == nil {
			close(b.ready)
		}
	})
	all.Wait()
	return errors.Join(errs...)
}

// serve works one lane whenever it is ours. It calls settled when the lane is being read, is somebody else's, or will
// not be worked any more.
func (b *Broker) serve(ctx context.Context, l layout.Spec, settled func()) error {
	defer settled()
	known := sync.OnceFunc(b.muster.known)
	defer known()
	counts := b.countOf(l)
	for {
		lease, err := b.leaser.Acquire(ctx, l.Stream, func() { known(); settled() })
		if err != nil {
			return nil // ctx ended
		}
		b.log.Debug("owner of a lane", "stream", l.Stream)
		w := b.newWorker(l, lease, counts, settled)
		known()
		b.enlist(w)
		err = w.run(ctx)
		b.dismiss(w)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
		if e := lease.Release(release, w.leftOff()); e != nil {
			err = errors.Join(err, fmt.Errorf("release %s: %w", l.Stream, e))
		}
		cancel()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			b.log.Warn("no longer the owner of a lane", "stream", l.Stream, "err", err)
		} else {
			b.log.Info("no longer the owner of a lane", "stream", l.Stream)
		}
	}
}

// leftOff is where a successor starts.
func (w *worker) leftOff() lease.Cursor {
	if arrived := w.cursor.Arrived(); arrived > 0 {
		return lease.Cursor{Next: arrived + 1, Created: w.created}
	}
	return lease.Cursor{}
}

// newWorker prepares a worker for a lane that is ours.
func (b *Broker) newWorker(l layout.Spec, lease lease.Lease, counts *laneCount, adopted func()) *worker {
	from := lease.From()
	clock := newClock(time.Now())
	w := &worker{
		engine: b.engine, lane: l, lease: lease, log: b.log.With("stream", l.Stream),
		reader: lane.NewReader(lane.ReaderConfig{
			Conn: b.links.Read, JetStream: b.reading, APIPrefix: b.cfg.APIPrefix, Inbox: inboxOf(b.links.Read),
			Stream: l.Stream, Delay: l.Delay, From: from.Next, FromCreated: from.Created, Buffer: b.budget.buffer, Log: b.log,
		}),
		clock: clock, wheel: wheel.New[*held](), late: wheel.New[struct{}](), mail: newMailbox[event](),
		ping: make(chan struct{}), gone: make(chan struct{}), adopted: adopted, complaints: make(map[string]complaint),
		gauge: &gauge{base: clock.base}, counts: counts, commit: commitState{judge: new(lane.Judge)},
		committer: purge{engine: b.engine, stream: l.Stream},
	}
	share := freeShare
	if l.Kind == layout.Retry {
		share = retryShare
	}
	w.account = b.budget.open(share, w.wake)
	w.from = from.Next
	w.holdBack()
	return w
}

// wake makes the loop turn.
func (w *worker) wake() { w.mail.put(func(time.Time) {}) }

// Ready is closed when every lane that this instance owns is being read.
func (b *Broker) Ready() <-chan struct{} { return b.ready }
