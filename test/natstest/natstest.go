// Package natstest runs a real nats-server with JetStream and file storage for tests. Under the fake time of
// testing/synctest, a test of a delay of two hours takes milliseconds, and is exact to the nanosecond.
//
// Fake time requires:
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

// Timeout is the maximum time for which a test of real processes waits for an event. The event should happen
// immediately, but the machine may be busy.
const Timeout = time.Minute

// Await waits in real time until a condition holds. It ends the test after Timeout.
func Await(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Timeout); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s it is not true that %s", Timeout, condition)
		}
	}
}

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

// BubbleWith is like Bubble, with options for the server. Without a directory in the options, the server gets a new
// one. When f returns, its handlers end before the connections are closed, so none fails on a closed connection.
func BubbleWith(t *testing.T, opts server.Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	opts.DontListen, opts.JetStream = true, true // rule 2
	if opts.StoreDir == "" {
		opts.StoreDir = Dir(t) // rule 3
	}
	DropTimers()
	useProcessors(1)
	defer useProcessors(-1)
	synctest.Test(t, func(t *testing.T) {
		s := RunWith(t, opts)
		defer synctest.Wait()
		f(t, s)
	})
}

// Subtest runs f as a subtest with Bubble, in parallel with other subtests.
func Subtest(t *testing.T, name string, f func(t *testing.T, s *Server)) {
	t.Helper()
	SubtestWith(t, name, server.Options{}, f)
}

// SubtestWith is like Subtest, with options for the server: see BubbleWith.
func SubtestWith(t *testing.T, name string, opts server.Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		BubbleWith(t, opts, f)
	})
}

// DropTimers empties nats.go's pool of timers. Each reconnect takes a timer out of the pool and puts it back, and a
// bubble that gets the timer of another bubble panics. DropTimers helps bubbles that run one after the other, and not
// bubbles that run at the same time.
func DropTimers() {
	runtime.GC() // the contents of a sync.Pool survive one collection
	runtime.GC()
}

// Handle calls a function for each message on a subject.
func Handle(t testing.TB, nc *nats.Conn, subject string, handler nats.MsgHandler) {
	t.Helper()
	_, err := nc.Subscribe(subject, handler)
	NoError(t, err)
}

// Flush waits until the server has received everything that was sent on a connection. Unlike nc.Flush, it takes no
// timer out of the pool of DropTimers. With nc.Flush, the program sometimes panics where bubbles run at the same time.
func Flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// Request is like nc.RequestMsg, without a timer of that pool.
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

// RunListening starts a server that listens on a free port, for processes and tests in real time.
func RunListening(t testing.TB) *Server {
	t.Helper()
	return RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true})
}

// RunWith starts a server, and stops it when the test ends. It adds the options that all tests need. Without a
// directory in the options, the server gets a new one.
func RunWith(t testing.TB, opts server.Options) *Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	// Without these options, most of the cost of a month of fake time would be the server's periodic work: the
	// synchronisation of each stream to the disk, and statistics.
	opts.NoSystemAccount = true
	if opts.StoreDir == "" {
		opts.StoreDir = Dir(t)
	}
	if opts.SyncInterval == 0 {
		opts.SyncInterval = 24 * time.Hour
	}
	s := &Server{t: t, opts: opts}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts a stopped server on its data.
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

// Stop stops the server, and keeps its data.
func (s *Server) Stop() {
	if ns := s.current.Swap(nil); ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}

// Restart stops the server, and starts it again after a time.
func (s *Server) Restart(down time.Duration) {
	s.t.Helper()
	s.Stop()
	time.Sleep(down)
	s.Start()
}

// Reload changes the configuration of the running server, as a reload of its file does. The change also applies to
// later starts.
func (s *Server) Reload(change func(*server.Options)) {
	s.t.Helper()
	change(&s.opts)
	opts := s.opts
	if err := s.Server().ReloadOptions(&opts); err != nil {
		s.t.Fatalf("reload: %v", err)
	}
}

// Server returns the running server, or nil.
func (s *Server) Server() *server.Server { return s.current.Load() }

// Dial connects to the running server. It makes a Server a nats.CustomDialer.
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

// Connect returns a connection that reconnects after restarts, and closes it when the test ends.
func (s *Server) Connect(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	opts = append([]nats.Option{
		nats.SetCustomDialer(s), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond),
		nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect("nats://127.0.0.1:4222", opts...) // an IP address, since a host name would need a real lookup
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// JetStream returns the JetStream context of a connection. In real time, its timeout is Timeout instead of the default.
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
