package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/layout"
	"delaybroker/broker/probes"
	"delaybroker/cmd/embedded"
)

// serve runs the broker until ctx ends or a signal arrives.
func serve(ctx context.Context, stderr io.Writer) error {
	keepWithin(readMemory())
	known, err := settingNames()
	if err != nil {
		return err
	}
	unknown := unknownNames(os.Environ(), known)
	cfg, err := readConfig()
	if err != nil {
		for _, u := range unknown { // there is no log yet, and one of them may be the reason
			fmt.Fprintln(stderr, u)
		}
		return err
	}
	log := newLogger(stderr, cfg.log)
	for _, u := range unknown {
		log.Warn("this variable is no setting; see serve --help", "name", u.name, "nearest", u.nearest)
	}
	if err := runBroker(ctx, cfg, log); err != nil {
		log.Error("stopped by an error", "err", err)
		return logged{err}
	}
	log.Info("stopped")
	return nil
}

// runBroker starts what is in the picture, from the bottom up, and stops it from the top down.
//
//	           SIGINT, SIGTERM                      probes, page
//	                  │                                   │
//	          1 × watch the stop               0..1 × http.Server, page.Run
//	                  │ ctx                               │ Ready, Alive, Status, Answer
//	                  ▼                                   ▼
//	this goroutine: broker.Run  ────────────────────  1 × announce "ready"
//	                  │          (its goroutines: see broker)
//	                  │ 4 × nats.Conn: read, write, deliver, control (each with nats.go's goroutines)
//	                  ▼
//	     0..1 × embedded nats-server, or the one at NATS_URL
//
// Whatever fails ends ctx with its cause; then everything stops as it would for a signal. The order of a stop, which is
// that of the defers below, reversed:
//
//  1. /readyz says 503, so that nobody counts on us
//  2. the broker drains, at most DELAY_SHUTDOWN_GRACE
//  3. the connections close
//  4. HTTP stops: until here /healthz tells a supervisor that a slow drain is no hang
//  5. the embedded server stops, with all that was said to it on disk
func runBroker(parent context.Context, cfg config, log *slog.Logger) (err error) {
	life := begin(parent, log)
	defer func() { life.end(err) }()
	ctx := life.ctx

	// The port comes first: a broker that cannot be probed should not have touched anything.
	listener, err := listen(cfg.httpAddr)
	if err != nil {
		return cfg.another(ctx, err)
	}
	if listener != nil {
		defer listener.Close()
	}
	build := readBuild()
	dialer := dialer{
		access: cfg.access, apart: cfg.apart, version: build.name(), patient: cfg.embed == nil, lost: life.fail, log: log,
	}
	var storage func() []inspect.Check
	if cfg.embed != nil {
		server, err := embedded.Start(*cfg.embed, log)
		if err != nil {
			return err
		}
		defer server.Stop()
		server.Keep(life.fail)
		storage = func() []inspect.Check { return []inspect.Check{server.Disk(), server.Store()} }
		dialer.access = cfg.access.at(server)
	}
	web := probes.NewServer(log)
	defer probes.Close(web, log)
	links, err := dialer.dial()
	if err != nil {
		return cfg.notAccepted(err)
	}
	defer links.close()
	cfg.broker.Log, cfg.broker.Place = log, cfg.place()
	cfg.remembers()
	b, err := broker.New(links.forBroker(), cfg.broker)
	if err != nil {
		return err
	}
	var durability atomic.Pointer[string]
	if listener != nil {
		source := probes.Source{
			Engine: b, Connected: links.connected, Storage: storage, Stopping: ctx.Done(), Durability: &durability,
			Version: build.name(), Revision: orUnknown(build.revision), GoVersion: orUnknown(build.goVersion),
		}
		life.show(web, source, cfg.pageOf(b, dialer, source, &durability, log))
		life.running.Go(func() { probes.Serve(web, listener, life.fail) })
	}

	if err := links.await(ctx, log); err != nil {
		return life.failure()
	}
	return life.run(b, func() {
		cfg.announce(ctx, b, links.forBroker().Control, addressOf(listener), &durability, log)
	})
}

// run runs the broker until ctx ends, and calls announce when it is ready.
func (l *lifetime) run(b *broker.Broker, announce func()) error {
	l.running.Go(func() {
		select {
		case <-b.Ready():
			announce()
		case <-l.ctx.Done():
		}
	})
	err := b.Run(l.ctx)
	if errors.Is(err, layout.ErrMissingStreams) {
		err = fmt.Errorf("%w; %s", err, howToProvision(err))
	}
	return errors.Join(l.failure(), err)
}

// notAccepted explains that the embedded server refuses the broker's user: a server elsewhere is tried again instead.
func (c config) notAccepted(err error) error {
	if !errors.Is(err, nats.ErrAuthorization) {
		return err
	}
	return fmt.Errorf("%w: the embedded server does not accept the broker: %w", errConfig, c.access.explain(err))
}

// announce logs that the broker is ready, with what an acknowledgement means, and stores that meaning for the probes.
func (c config) announce(
	ctx context.Context, b *broker.Broker, control *nats.Conn, probes string, durability *atomic.Pointer[string],
	log *slog.Logger,
) {
	meaning, weak := c.durability(ctx, b, control, log).Words()
	durability.Store(&meaning)
	log.Info("ready", "version", readBuild().name(),
		"server", inspect.ServerOf(control), "server_version", control.ConnectedServerVersion(),
		"prefix", c.broker.Prefix, "levels", len(c.broker.Ladder.Levels()),
		"http", probes, "durability", meaning)
	for _, w := range weak {
		log.Warn("durability is weak", "what", w.What, "do", w.Do)
	}
}

// howToProvision says what to do about streams that are missing.
func howToProvision(err error) string {
	if errors.Is(err, layout.ErrForbidden) {
		return "grant the broker's user that right for each of them, or run delaybroker provision as a user who has it"
	}
	return "run delaybroker provision, or leave DELAY_PROVISION=verify out to have them created"
}

// listen opens the port for probes. It returns nil when there is to be none.
func listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("DELAY_HTTP_ADDR: %w; set another address, or off", err)
	}
	return l, nil
}

// another explains that a port is in use, if it is another delaybroker that uses it.
func (c config) another(ctx context.Context, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	if _, ask := probes.Ask(ctx, "http://"+dialable(c.httpAddr)+"/healthz"); ask != nil {
		return err
	}
	who := "HTTP address " + c.httpAddr
	if c.embed != nil {
		if pid := embedded.LockedBy(c.embed.Dir); pid != "" {
			who = "pid " + pid + ", " + who
		}
	}
	return fmt.Errorf("a delaybroker already runs here (%s); for another one, %w", who, err)
}

// addressOf is the address of the probes, with the port that the system chose where the setting is 0.
func addressOf(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}

// durability reads the configuration of the streams. What cannot be read is left out.
func (c config) durability(
	ctx context.Context, b *broker.Broker, control *nats.Conn, log *slog.Logger,
) inspect.Durability {
	ctx, cancel := context.WithTimeout(ctx, inspect.Patience)
	defer cancel()
	streams, err := b.StreamConfigs(ctx)
	if err != nil {
		log.Debug("looking at the streams for their durability", "err", err)
	}
	return inspect.Durability{
		Streams: streams, Clustered: control.ConnectedClusterName() != "", Sync: c.embed.Durability(),
		Version: control.ConnectedServerVersion(),
	}
}

// place identifies where this broker runs. After a crash, a broker at the same place takes over its own lanes at once.
// Two brokers cannot be at one place: the directory of the embedded server is locked, and an address of a host has one
// listener. Only containers that share a host name, and not its network, can have the same; then the younger one goes
// on without a place. In Kubernetes, the host name is the name of the pod.
//
// With HTTP off, or on a port that the system chooses, there is no place.
func (c config) place() broker.Place {
	host, err := os.Hostname()
	if err != nil {
		return broker.Place{}
	}
	if c.embed != nil {
		dir, err := filepath.Abs(c.embed.Dir)
		if err != nil {
			return broker.Place{}
		}
		return broker.Place{Name: host + " " + dir, Locked: true}
	}
	if _, port, err := net.SplitHostPort(c.httpAddr); err != nil || port == "0" {
		return broker.Place{}
	}
	return broker.Place{Name: host + " " + c.httpAddr}
}
