// Package natstest runs a real nats-server with JetStream and file storage for tests, under the fake time of
// testing/synctest where a test wants it: a delay of two hours is then tested to the nanosecond in milliseconds.
//
// How that works:
//
//  1. ats.Register before any bubble. Otherwise the file store starts a goroutine on a package-level channel inside the
//     bubble, which never counts as blocked, and time stops.
//  2. No listener: connections are net.Pipes, which block durably; sockets do not.
//  3. The data directory is made outside the bubble.
//  4. Everything is closed inside the bubble, which waits for every goroutine: a leak is a failure.
//  5. No mutex is held while waiting for a channel, a timer or I/O.
//  6. No timer of an earlier bubble is left in nats.go's pool: see [DropTimers].
package natstest

import (
	"context"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Timeout is how long a test of real processes waits for an event that should happen at once, on a busy machine.
const Timeout = time.Minute

func init() {
	ats.Register() // rule 1
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a server for each test makes much garbage that is not worth collecting: a tenth of the CPU
	}
}

// Bubble runs f under fake time with a server of its own, which it stops afterwards.
func Bubble(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	BubbleWith(t, server.Options{}, f)
}

// BubbleWith is Bubble with a server of these options, on a directory of its own if they name none. A handler of f that
// is still at work when f returns ends before anything is closed: it must not fail on a closed connection.
func BubbleWith(t *testing.T, opts server.Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	opts.DontListen, opts.JetStream = true, true // rule 2
	if opts.StoreDir == "" {
		opts.StoreDir = t.TempDir() // rule 3
	}
	DropTimers()
	synctest.Test(t, func(t *testing.T) {
		s := RunWith(t, opts)
		defer synctest.Wait()
		f(t, s)
	})
}

// DropTimers empties nats.go's pool of timers. Each reconnect takes one out and puts it back, and a bubble that gets
// another's panics. It helps one bubble after the other, not those that run at the same time.
func DropTimers() {
	runtime.GC() // what is in a sync.Pool survives one collection
	runtime.GC()
}

// Flush waits until the server has taken what was sent on a connection. It is not nc.Flush, which takes a timer out of
// the pool of DropTimers, and so ends the program now and then where bubbles run at the same time.
func Flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// Request is nc.RequestMsg without a timer of that pool.
func Request(nc *nats.Conn, m *nats.Msg, within time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return nc.RequestMsgWithContext(ctx, m)
}

// Server is a server in this process that can be stopped and started again on its data.
type Server struct {
	t       testing.TB
	opts    server.Options
	current atomic.Pointer[server.Server]
}

// Run starts a server without a listener on the data in dir, and stops it when the test ends.
func Run(t testing.TB, dir string) *Server {
	t.Helper()
	return RunWith(t, server.Options{DontListen: true, JetStream: true, StoreDir: dir})
}

// RunWith starts a server with the given options; those that tests always need are added.
func RunWith(t testing.TB, opts server.Options) *Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	// The server's periodic work for each stream, for the disk and for statistics, would be most of the cost of a month of
	// fake time.
	opts.NoSystemAccount = true
	if opts.SyncInterval == 0 {
		opts.SyncInterval = 24 * time.Hour
	}
	s := &Server{t: t, opts: opts}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts a stopped server on the data it had.
func (s *Server) Start() {
	s.t.Helper()
	opts := s.opts
	ns, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatalf("make the server: %v", err)
	}
	ns.Start()
	if !opts.DontListen && !ns.ReadyForConnections(Timeout) {
		s.t.Fatalf("the server does not listen after %v", Timeout)
	}
	s.current.Store(ns)
}

// Stop stops the server; its data stays.
func (s *Server) Stop() {
	if ns := s.current.Swap(nil); ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}

// Restart stops the server, lets it lie for a while, and starts it again.
func (s *Server) Restart(down time.Duration) {
	s.t.Helper()
	s.Stop()
	time.Sleep(down)
	s.Start()
}

// Reload changes the configuration of the running server as a reload of its file does, also for later starts.
func (s *Server) Reload(change func(*server.Options)) {
	s.t.Helper()
	change(&s.opts)
	opts := s.opts
	if err := s.Server().ReloadOptions(&opts); err != nil {
		s.t.Fatalf("reload: %v", err)
	}
}

// Server is the server that runs, or nil.
func (s *Server) Server() *server.Server { return s.current.Load() }

// Dial makes it a nats.CustomDialer for the server that runs at the moment.
func (s *Server) Dial(string, string) (net.Conn, error) {
	ns := s.current.Load()
	if ns == nil {
		return nil, net.ErrClosed
	}
	if s.opts.DontListen {
		return ns.InProcessConn()
	}
	return net.Dial("tcp", ns.Addr().String())
}

// Connect makes a connection that survives restarts, and closes it when the test ends.
func (s *Server) Connect(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	opts = append([]nats.Option{
		nats.SetCustomDialer(s), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond),
		nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect("nats://127.0.0.1:4222", opts...) // an IP: a name would be looked up for real
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// JetStream is a connection's JetStream. In real time it waits longer for answers than it does by itself.
func (s *Server) JetStream(nc *nats.Conn) jetstream.JetStream {
	s.t.Helper()
	var opts []jetstream.JetStreamOpt
	if !s.opts.DontListen {
		opts = append(opts, jetstream.WithDefaultTimeout(Timeout))
	}
	js, err := jetstream.New(nc, opts...)
	if err != nil {
		s.t.Fatalf("JetStream: %v", err)
	}
	return js
}
