package embedded

import (
	"context"
	"crypto/tls"
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

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/doctor"
	"delaybroker/broker/stats"
)

// acceptTimeout is the timeout for the server to accept connections after its streams are recovered.
const acceptTimeout = 10 * time.Second

// stopTimeout is the timeout for the server to stop. A server whose disk was full may never stop: nats-server 2.15.2
// deadlocks when it purges a stream whose last block it cannot write.
const stopTimeout = 15 * time.Second

var errStuck = fmt.Errorf("the embedded server does not stop within %s, probably because its disk was full;"+
	" start the broker again, no accepted message is lost", stopTimeout)

// A Server is a running NATS server, with its lock on the directory.
type Server struct {
	config Config
	file   File // the file of config at the start
	log    *slog.Logger
	disk   *disk
	unlock func()
	// The goroutine of WatchDisk replaces the server and its certificates.
	server       atomic.Pointer[server.Server]
	certificates atomic.Pointer[[]tls.Certificate]

	running   sync.WaitGroup     // the goroutine of WatchDisk
	stopWatch context.CancelFunc // ends that goroutine
}

// Start starts a server, and returns when it accepts connections. Recovery of a large store takes a while. On a full
// disk it starts no server, since nats-server would deadlock at the first purge. The caller must stop the server.
func Start(c Config, log *slog.Logger) (*Server, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory DELAY_EMBEDDED_DIR: %w", err)
	}
	if err := checkLayout(c.Dir); err != nil {
		return nil, fmt.Errorf("DELAY_EMBEDDED_DIR %s: %w", c.Dir, err)
	}
	unlock, err := lockDir(c.Dir)
	switch {
	case errors.Is(err, ErrLocked):
		if pid := LockedBy(c.Dir); pid != "" {
			err = fmt.Errorf("%w (pid %s)", err, pid)
		}
		return nil, fmt.Errorf("DELAY_EMBEDDED_DIR %s: %w; give each broker its own"+
			" directory, or set NATS_URL to the server of the other broker", c.Dir, err)
	case err != nil:
		return nil, fmt.Errorf("DELAY_EMBEDDED_DIR %s is not writable: %w", c.Dir, err)
	}
	e := &Server{config: c, log: log, disk: newDisk(c.Dir), unlock: unlock, stopWatch: func() {}}
	e.file, err = c.readFile()
	if err == nil {
		err = e.disk.tryWrite()
		if err != nil {
			err = fmt.Errorf("DELAY_EMBEDDED_DIR %s accepts no data; accepted messages are safe;"+
				" free some space, and start again: %w", c.Dir, err)
		}
	}
	if err == nil {
		err = e.start()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return e, nil
}

// WatchDisk starts a goroutine that restarts the server after its disk was full and accepts data again. The goroutine
// ends at Stop. If a restart fails, the goroutine calls fail and ends.
func (e *Server) WatchDisk(fail func(error)) {
	ctx, cancel := context.WithCancel(context.Background())
	e.stopWatch = cancel
	e.running.Go(func() {
		if err := e.disk.watch(ctx, e.Restart, e.log); err != nil {
			fail(fmt.Errorf("restart the embedded server: %w", err))
		}
	})
}

// Restart stops and starts the server, on the same port. It returns an error if the configuration file is now invalid,
// or requires other things of clients: the broker has read it only at its start. Otherwise a file without users would
// open the server to everyone, without the warning of a start.
func (e *Server) Restart() error {
	file, err := e.config.readFile()
	if err == nil && !file.sameForClients(e.file) {
		err = fmt.Errorf("DELAY_EMBEDDED_CONFIG %s: its users or its TLS have changed, so the broker must start again",
			e.config.File)
	}
	if err != nil {
		return err
	}
	current := e.server.Load()
	e.config.Port = current.Addr().(*net.TCPAddr).Port
	if err := stop(current); err != nil {
		return err
	}
	e.disk.clearFailure() // before the start, which may fail to write again
	return e.start()
}

// stop stops a server, or returns errStuck. A stuck server ends with the process.
func stop(s *server.Server) error {
	stopped := make(chan struct{})
	go func() {
		s.Shutdown()
		s.WaitForShutdown()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-time.After(stopTimeout):
		return errStuck
	}
}

// start starts the server. It reads the configuration file again, because nats-server changes the options that it
// receives, and because a certificate in the file may be new.
func (e *Server) start() error {
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
	s, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("configure the embedded server: %w", err)
	}
	bridge := &serverLog{log: e.log.With("from", "nats-server"), disk: e.disk}
	s.SetLoggerV2(bridge, false, false, false)
	s.Start()
	err = bridge.fatal()
	if err == nil && !s.ReadyForConnections(acceptTimeout) {
		err = fmt.Errorf("the server accepted no connection within %s", acceptTimeout)
	}
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("start the embedded server: %w", err)
	}
	if address := e.config.ExposedAddress(); address != "" {
		if address != e.config.OpenListener {
			address = s.Addr().String() // with the port that the system chose
		}
		e.log.Warn(doctor.ExposedWarning, "listen", address, "do", doctor.ExposedAdvice)
	}
	e.certificates.Store(&certificates)
	e.server.Store(s)
	return nil
}

// checkPort detects a port in use, the most common mistake, before the server recovers its streams. The server reports
// this mistake only in its log.
func (c Config) checkPort() error {
	address := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: set DELAY_EMBEDDED_LISTEN, or NATS_URL to use the other server",
			address)
	case err != nil:
		return fmt.Errorf("DELAY_EMBEDDED_LISTEN: %w", err)
	}
	return l.Close()
}

// TLS returns the TLS options for a client on this host, or nil for a server without TLS. The client accepts only the
// certificate of this server, even after a restart with another certificate. The client must connect over TCP:
// nats-server's in-process connections are slower, and block each other when a user is refused.
func (e *Server) TLS() []nats.Option {
	if !e.file.RequiresTLS {
		return nil
	}
	return []nats.Option{nats.Secure(trustOnly(func() []tls.Certificate { return *e.certificates.Load() }))}
}

// DiskCheck returns a check for /readyz: the disk accepts data.
func (e *Server) DiskCheck() stats.Check { return e.disk.check() }

// URL returns the address of the server for clients on this host.
func (e *Server) URL() string {
	host := e.config.Host
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	port := e.server.Load().Addr().(*net.TCPAddr).Port
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// StoreCheck returns a check for /readyz: the store is below its limit. At the limit the server refuses all messages,
// although the disk has room.
func (e *Server) StoreCheck() stats.Check {
	if !e.disk.check().OK { // a stuck server does not answer
		return stats.Check{Name: "store", OK: true, Detail: "unknown"}
	}
	info, err := e.server.Load().Jsz(&server.JSzOptions{})
	if err != nil || info.Disabled || info.Config.MaxStore <= 0 {
		return stats.Check{Name: "store", OK: true, Detail: "unknown"} // another check reports the reason
	}
	return e.file.checkStore(doctor.Usage{Bytes: info.Store, Limit: info.Config.MaxStore})
}

// Stop stops the server and unlocks the directory. If the server does not stop, Stop leaves both to the end of the
// process.
func (e *Server) Stop() {
	e.stopWatch()
	e.running.Wait()
	if err := stop(e.server.Load()); err != nil {
		e.log.Error("the embedded server does not stop; it ends with the process", "err", err)
		return // the server may still write, so the directory stays locked
	}
	e.unlock()
}
