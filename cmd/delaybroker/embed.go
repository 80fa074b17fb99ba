package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
)

const (
	// Bounds of DELAY_EMBEDDED_SYNC. Below the first, "always" is the honest wish; the last is nats-server's own
	// default.
	minSync, maxSync = 10 * time.Millisecond, 2 * time.Minute

	// acceptTimeout is how long the server may take to accept connections once its streams are recovered.
	acceptTimeout = 10 * time.Second
)

// embedConfig says how to run a NATS server of our own. Without users it belongs on a loopback address.
type embedConfig struct {
	file           string // nats-server's, empty for none; it may be changed between two starts
	user, password string // who may connect, unless the file has users; empty for anybody

	tls     bool // the file wants TLS of clients
	bounded bool // the file says how much it may store
	open    bool // it asks nobody who he is

	host       string // empty means every interface
	port       int    // zero means any that is free
	dir        string
	sync       time.Duration // between two fsyncs, unless syncAlways
	syncAlways bool
}

// durability is how often it syncs to disk; nil where no server is embedded.
func (c *embedConfig) durability() *inspect.Sync {
	if c == nil {
		return nil
	}
	return &inspect.Sync{Always: c.syncAlways, Every: c.sync}
}

// options are nats-server's. It would otherwise put its data into a temporary directory and react to signals itself.
func (c embedConfig) options() (*server.Options, error) {
	o := &server.Options{}
	if c.file != "" {
		var err error
		if o, err = server.ProcessConfigFile(c.file); err != nil {
			return nil, fmt.Errorf("DELAY_EMBEDDED_CONFIG %s: %s", c.file, oneLine(err))
		}
	}
	if !hasUsers(o) {
		o.Username, o.Password = c.user, c.password
	}
	o.Host, o.Port = c.host, c.port
	if c.port == 0 {
		o.Port = server.RANDOM_PORT // zero is 4222 there
	}
	o.ServerName = inspect.EmbeddedName
	o.JetStream, o.StoreDir, o.SyncInterval, o.SyncAlways = true, c.dir, c.sync, c.syncAlways
	o.NoSigs, o.DisableJetStreamBanner = true, true
	return o, nil
}

// exposed is the address where whoever reaches it may do everything; empty if there is none, or only this host can.
func (c *embedConfig) exposed() string {
	if c == nil || !c.open || c.isLoopback() {
		return ""
	}
	return net.JoinHostPort(c.host, strconv.Itoa(c.port))
}

// isLoopback reports whether only this host can connect. A name other than localhost is taken for a public one.
func (c embedConfig) isLoopback() bool {
	return c.host == "localhost" || net.ParseIP(c.host).IsLoopback()
}

// An embedded is a running NATS server and its lock on the directory.
type embedded struct {
	config embedConfig
	log    *slog.Logger
	disk   *disk
	unlock func()
	// Both are replaced by the goroutine of keep.
	server       atomic.Pointer[server.Server]
	certificates atomic.Pointer[[]tls.Certificate] // the server's

	running sync.WaitGroup     // the goroutine of keep
	release context.CancelFunc // ends it
}

// startEmbedded returns when the server accepts connections, which on a large store takes a while. It is the caller who
// stops it.
func startEmbedded(c embedConfig, log *slog.Logger) (*embedded, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory DELAY_EMBEDDED_DIR: %w", err)
	}
	unlock, err := lockDir(c.dir)
	switch {
	case errors.Is(err, errLocked):
		if pid := lockedBy(c.dir); pid != "" {
			err = fmt.Errorf("%w, which already runs here (pid %s)", err, pid)
		}
		return nil, fmt.Errorf("DELAY_EMBEDDED_DIR %s: %w; give each its own directory,"+
			" or let this one use the other's server by NATS_URL", c.dir, err)
	case err != nil:
		return nil, fmt.Errorf("DELAY_EMBEDDED_DIR %s is not writable: %w", c.dir, err)
	}
	e := &embedded{config: c, log: log, disk: newDisk(c.dir), unlock: unlock, release: func() {}}
	if err := e.start(); err != nil {
		unlock()
		return nil, err
	}
	return e, nil
}

// keep restarts the server when its disk was full and takes data again, until stop. It calls fail when that is
// impossible.
func (e *embedded) keep(fail func(error)) {
	ctx, cancel := context.WithCancel(context.Background())
	e.release = cancel
	e.running.Go(func() {
		if err := e.disk.watch(ctx, e.restart, e.log); err != nil {
			fail(fmt.Errorf("restart the embedded server: %w", err))
		}
	})
}

// restart keeps the port, which clients know.
func (e *embedded) restart() error {
	old := e.server.Load()
	e.config.port = old.Addr().(*net.TCPAddr).Port
	old.Shutdown()
	old.WaitForShutdown()
	return e.start()
}

// start reads the file anew: nats-server makes its own of what is in the options. A certificate in it may be another
// than before.
func (e *embedded) start() error {
	if err := e.config.checkPort(); err != nil {
		return err
	}
	options, err := e.config.options()
	if err != nil {
		return err
	}
	var certificates []tls.Certificate
	if options.TLSConfig != nil {
		certificates = options.TLSConfig.Certificates
	}
	s, err := e.config.start(options, e.log, e.disk)
	if err != nil {
		return err
	}
	e.certificates.Store(&certificates)
	e.server.Store(s)
	return nil
}

func (c embedConfig) start(options *server.Options, log *slog.Logger, d *disk) (*server.Server, error) {
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("configure the embedded server: %w", err)
	}
	bridge := &serverLog{log: log.With("from", "nats-server"), disk: d}
	s.SetLoggerV2(bridge, false, false, false)
	s.Start()
	err = bridge.fatal()
	if err == nil && !s.ReadyForConnections(acceptTimeout) {
		err = fmt.Errorf("no connection accepted for %s", acceptTimeout)
	}
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	if c.exposed() != "" {
		log.Warn(inspect.Exposed, "listen", s.Addr(), "do", inspect.CloseIt)
	}
	return s, nil
}

// checkPort finds the commonest mistake, a port in use, before the streams are recovered. The server itself reports it
// only in its log.
func (c embedConfig) checkPort() error {
	address := net.JoinHostPort(c.host, strconv.Itoa(c.port))
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: set DELAY_EMBEDDED_LISTEN, or NATS_URL to use the server that is there",
			address)
	case err != nil:
		return fmt.Errorf("DELAY_EMBEDDED_LISTEN: %w", err)
	}
	return l.Close()
}

// access is how the broker connects, as this user: over TCP, since nats-server's in-process connections are slower, and
// wait for each other where a user is not accepted.
func (e *embedded) access(user access) access {
	to := access{url: e.url(), options: slices.Clone(user.options), login: user.login}
	if e.config.tls {
		to.options = append(to.options, nats.Secure(trustOnly(func() []tls.Certificate { return *e.certificates.Load() })))
	}
	return to
}

// url is where clients on this host find it.
func (e *embedded) url() string {
	host := e.config.host
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	port := e.server.Load().Addr().(*net.TCPAddr).Port
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// store is a check for /readyz: how full the server's store is. At its limit the server refuses to store anything, and
// nothing is accepted or moved, although the disk has room.
func (e *embedded) store() inspect.Check {
	info, err := e.server.Load().Jsz(&server.JSzOptions{})
	if err != nil || info.Disabled || info.Config.MaxStore <= 0 {
		return inspect.Check{Name: "store", OK: true, Detail: "not known"} // why is said elsewhere
	}
	return e.config.checkStore(inspect.Usage{Bytes: info.Store, Limit: info.Config.MaxStore})
}

func (c *embedConfig) checkStore(used inspect.Usage) inspect.Check {
	limit := "three quarters of what was free on the disk when the server started"
	if c.bounded {
		limit = "max_file of DELAY_EMBEDDED_CONFIG"
	}
	check := inspect.Check{Name: "store", OK: used.Part() < inspect.FullAt,
		Detail: fmt.Sprintf("%s of %s, %s", humanize.IBytes(used.Bytes), humanize.IBytes(uint64(used.Limit)), limit)}
	if !check.OK {
		check.Detail += ": " + inspect.EmbeddedFull
	}
	return check
}

// stop returns when everything is on disk and the directory is free.
func (e *embedded) stop() {
	e.release()
	e.running.Wait()
	s := e.server.Load()
	s.Shutdown()
	s.WaitForShutdown()
	e.unlock()
}
