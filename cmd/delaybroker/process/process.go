package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/doctor"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/link"
	"delaybroker/broker/operation"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/streams"
	"delaybroker/broker/web"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
)

// A Process runs a broker, its connections, its probes and, without an external server, a NATS server.
type Process struct {
	Config settings.Config
	Log    *slog.Logger

	Version, Revision, GoVersion string // of this program

	spans func() (sent, dropped uint64) // counts the spans; nil without tracing
}

// Run opens the port of the probes, starts the parts in the picture, and runs the broker until a signal or a failure.
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
// Any failure ends ctx with its cause. Then everything stops as after a signal. A stop has these steps:
//
//  1. /readyz returns 503
//  2. the broker drains, for at most DELAY_SHUTDOWN_GRACE
//  3. the connections close
//  4. HTTP stops: until then, /healthz shows supervisors that a slow drain is not a hang
//  5. the embedded server stops, after it has written everything to disk
//  6. the last spans are sent, for a second at most
func (p Process) Run(parent context.Context) (err error) {
	log := p.Log
	life := begin(parent, log)
	defer func() { life.end(err) }()
	ctx := life.ctx

	// A broker that cannot be probed must not change the streams.
	listener, err := listen(p.Config.HTTPAddr)
	if err != nil {
		return p.explainPortInUse(ctx, err)
	}
	if listener != nil {
		defer listener.Close()
	}
	defer p.trace()()
	cfg := p.Config
	dialer := links.Dialer{
		Access: cfg.Access, Overrides: cfg.LinkAccess, Version: p.Version, RetryConnect: cfg.Embedded == nil, Log: log,
	}
	var storage func() []stats.Check
	if cfg.Embedded != nil {
		server, err := embedded.Start(*cfg.Embedded, log)
		if err != nil {
			return err
		}
		defer server.Stop()
		server.WatchDisk(life.fail)
		storage = func() []stats.Check { return []stats.Check{server.DiskCheck(), server.StoreCheck()} }
		dialer.Access = cfg.Access.WithURL(server.URL(), server.TLS())
	}
	if listener != nil { // only the page shows the history
		p.Config.Broker.History = new(history.Book)
	}
	var handler web.Switch // serves the probes of the present broker
	httpServer := web.NewServer(log)
	httpServer.Handler = &handler
	defer web.Close(httpServer, log)
	if listener != nil {
		life.running.Go(func() { web.Serve(httpServer, listener, life.fail) })
	}
	for wait := minReopenWait; ; wait = min(2*wait, maxReopenWait) {
		began := time.Now()
		err := p.serve(life, dialer, &handler, listener, storage)
		if !errors.Is(err, errLinkClosed) || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > time.Minute {
			wait = minReopenWait
		}
		log.Error("the server closed a link for good; the broker opens all links again", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// minReopenWait and maxReopenWait bound the time until the links are opened again. It grows while links are closed
// within a minute.
const minReopenWait, maxReopenWait = 500 * time.Millisecond, 10 * time.Second

// errLinkClosed is the cause of the end of a broker whose link was closed permanently. The server closes a link for
// example after a message that is larger than a max_payload that was lowered; nats.go learns of it only by a new link.
var errLinkClosed = errors.New("a link is closed")

// serve opens the links, and runs a broker until the lifetime or the broker ends, or a link is closed permanently.
func (p Process) serve(
	life *lifetime, dialer links.Dialer, handler *web.Switch, listener net.Listener, storage func() []stats.Check,
) error {
	log := p.Log
	ctx, fail := context.WithCancelCause(life.ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer fail(nil)
	dialer.OnClosed = func(err error) { fail(fmt.Errorf("%w: %w", errLinkClosed, err)) }
	set, err := dialer.Dial()
	if err != nil {
		return p.explainRefusal(err)
	}
	defer set.Close()
	cfg := &p.Config.Broker
	cfg.Log, cfg.Place, cfg.Version, cfg.Calls = log, p.place(), p.Version, operation.Calls(p.opener(dialer, "questions"))
	b, err := broker.New(set.BrokerLinks(), *cfg)
	if err != nil {
		return err
	}
	var durability atomic.Pointer[string]
	if listener != nil {
		source := web.Source{
			Engine: b, LinkFaults: set.Faults, Storage: storage, Stopping: ctx.Done(), Durability: &durability,
			Traces: p.spans, Version: p.Version, Revision: p.Revision, GoVersion: p.GoVersion,
		}
		statusPage := p.page(b, dialer, source)
		source.Page = statusPage
		handler.Set(source.Handler())
		serving.Go(func() { statusPage.Run(ctx) })
	}

	if err := set.Await(ctx, log); err != nil {
		if ctx.Err() != nil {
			return life.failureOf(ctx)
		}
		return err
	}
	serving.Go(func() {
		select {
		case <-b.Ready():
			p.announce(ctx, b, set.BrokerLinks().Control, listenAddress(listener), &durability)
		case <-ctx.Done():
		}
	})
	err = b.Run(ctx)
	if errors.Is(err, streams.ErrMissingStreams) {
		err = fmt.Errorf("%w; %s", err, provisionAdvice(err))
	}
	return errors.Join(life.failureOf(ctx), err)
}

// explainRefusal explains the error if the embedded server refuses the broker's user or certificate. With an external
// server, the links retry instead.
func (p Process) explainRefusal(err error) error {
	if !errors.Is(err, nats.ErrAuthorization) && !links.RefusesCertificate(err) {
		return err
	}
	return fmt.Errorf("%w: the embedded server does not accept the broker: %w",
		settings.ErrConfig, p.Config.Access.Explain(err))
}

// announce logs that the broker is ready, with the durability of an acknowledged message. It stores the durability for
// the probes.
func (p Process) announce(
	ctx context.Context, b *broker.Broker, control *nats.Conn, probes string, durability *atomic.Pointer[string],
) {
	c := p.Config.Broker
	meaning, weak := p.durability(ctx, b, control).Describe()
	durability.Store(&meaning)
	p.Log.Info("ready", "version", p.Version,
		"server", link.ServerOf(control), "server_version", control.ConnectedServerVersion(),
		"prefix", c.Prefix, "levels", len(c.Ladder.Levels()),
		"http", probes, "page", settings.PageURL(probes), "durability", meaning)
	for _, w := range weak {
		p.Log.Warn("the durability has a weakness", "what", w.Detail, "do", w.Advice)
	}
}

// provisionAdvice returns the advice about missing streams.
func provisionAdvice(err error) string {
	if errors.Is(err, streams.ErrForbidden) {
		return "grant the broker's user that permission for each stream, or run delaybroker provision as a user with the " +
			"permission"
	}
	return "run delaybroker provision, or remove DELAY_PROVISION=verify to create them at the start"
}

// listen opens the port for probes. It returns nil if HTTP is off.
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

// explainPortInUse explains that another delaybroker uses the port, if one does.
func (p Process) explainPortInUse(ctx context.Context, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	if _, askErr := web.Get(ctx, p.Config.ProbeURL()+"/healthz"); askErr != nil {
		return err
	}
	owner := "delaybroker"
	if p.Config.Embedded != nil {
		if pid := embedded.LockedBy(p.Config.Embedded.Dir); pid != "" {
			owner += " (pid " + pid + ")"
		}
	}
	return fmt.Errorf("%s is in use by %s: %w", p.Config.HTTPAddr, owner, err)
}

// listenAddress returns the address on which HTTP listens, or "off". If DELAY_HTTP_ADDR has port 0, the address has the
// port that the system chose.
func listenAddress(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}

// durability returns the durability of an acknowledged message. It takes into account the streams whose configurations
// the broker can read.
func (p Process) durability(ctx context.Context, b *broker.Broker, control *nats.Conn) doctor.Durability {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	streams, err := b.StreamConfigs(ctx)
	if err != nil {
		p.Log.Debug("cannot read the streams' durability", "err", err)
	}
	return doctor.Durability{
		Streams: streams, Clustered: control.ConnectedClusterName() != "", Sync: p.Config.Embedded.Durability(),
		Version: control.ConnectedServerVersion(),
	}
}

// place identifies the location where this broker runs. After a crash, the next broker at the place takes over the
// lanes of the crashed broker within a second. Two brokers have different places: the directory of the embedded server
// is locked, and an address of a host has one listener. The exception is two containers with one host name and separate
// networks. Then the container that started later continues without a place. In Kubernetes, the host name is the name
// of the pod.
//
// With an external server, and HTTP off or on a port chosen by the system, there is no place.
func (p Process) place() config.Place {
	host, err := os.Hostname()
	if err != nil {
		return config.Place{}
	}
	if server := p.Config.Embedded; server != nil {
		dir, err := filepath.Abs(server.Dir)
		if err != nil {
			return config.Place{}
		}
		return config.Place{Name: host + " " + dir, Locked: true}
	}
	if p.Config.ProbeURL() == "" {
		return config.Place{}
	}
	return config.Place{Name: host + " " + p.Config.HTTPAddr}
}
