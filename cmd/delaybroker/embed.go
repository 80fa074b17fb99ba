package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
)

const (
	// Bounds of DELAY_EMBEDDED_SYNC. Below the first, "always" is the honest wish; the last is nats-server's own
	// default.
	minSync, maxSync = 10 * time.Millisecond, 2 * time.Minute

	// acceptTimeout is how long the server may take to accept connections once its streams are recovered.
	acceptTimeout = 10 * time.Second
)

// embedConfig says how to run a NATS server of our own. It has no users, so it belongs on a loopback address.
type embedConfig struct {
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
func (c embedConfig) options() *server.Options {
	port := c.port
	if port == 0 {
		port = server.RANDOM_PORT // zero is 4222 there
	}
	return &server.Options{
		ServerName:             inspect.EmbeddedName,
		Host:                   c.host,
		Port:                   port,
		JetStream:              true,
		StoreDir:               c.dir,
		SyncInterval:           c.sync,
		SyncAlways:             c.syncAlways,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	}
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
	// server is replaced by the goroutine of keep.
	server atomic.Pointer[server.Server]

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
	s, err := c.start(log, e.disk)
	if err != nil {
		unlock()
		return nil, err
	}
	e.server.Store(s)
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
	s, err := e.config.start(e.log, e.disk)
	if err != nil {
		return err
	}
	e.server.Store(s)
	return nil
}

func (c embedConfig) start(log *slog.Logger, d *disk) (*server.Server, error) {
	if err := c.checkPort(); err != nil {
		return nil, err
	}
	s, err := server.NewServer(c.options())
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
	if !c.isLoopback() {
		log.Warn("the embedded server listens beyond this host and asks nobody for a password", "listen", s.Addr())
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

// url is where the broker dials. It goes over TCP: nats-server's in-process connections are slower.
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
	return checkStore(inspect.Usage{Bytes: info.Store, Limit: info.Config.MaxStore})
}

func checkStore(used inspect.Usage) inspect.Check {
	c := inspect.Check{Name: "store", OK: used.Part() < inspect.FullAt,
		Detail: fmt.Sprintf("%s of %s, three quarters of what was free on the disk when the server started",
			humanize.IBytes(used.Bytes), humanize.IBytes(uint64(used.Limit)))}
	if !c.OK {
		c.Detail += ": " + inspect.EmbeddedFull
	}
	return c
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
