// Package natstest runs a real nats-server with JetStream and file storage for tests. Under the fake time of
// testing/synctest, a test of a delay of two hours takes milliseconds, and is exact to the nanosecond.
//
// Fake time requires:
//
//  1. The package calls ats.Register before the first bubble. Otherwise the file store starts a goroutine inside the
//     bubble that waits on a channel from outside. Such a goroutine never counts as blocked, so fake time stops.
//  2. The server has no listener. Connections are net.Pipes: a goroutine that reads from a pipe is durably blocked, one
//     that reads from a socket is not.
//  3. The package creates the data directory outside of the bubble.
//  4. The test ends every goroutine inside the bubble. The bubble waits for all goroutines, so a leak fails the test.
//  5. No goroutine holds a mutex while the goroutine waits for a channel, a timer or I/O.
//  6. The pool of timers in nats.go has no timer of an earlier bubble: see [DropTimers].
package natstest

import (
	"context"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Timeout is the maximum time for which a test in real time waits for an event that should happen immediately. It is
// long because the machine may be busy.
const Timeout = time.Minute

// Await waits in real time until holds returns true. It fails the test after Timeout. The condition is a clause for the
// error.
func Await(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Timeout); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after %s: %s", Timeout, condition)
		}
	}
}

func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func init() {
	ats.Register() // rule 1
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // saves a tenth of the processor time, because each test starts a server
	}
}

// Bubble runs f under fake time with a new server, and stops the server afterwards.
func Bubble(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	BubbleWith(t, server.Options{}, f)
}

// BubbleWith is like Bubble, with options for the server. Without a directory in the options, the server gets a new
// one. When f returns, BubbleWith waits for the message handlers of f before the connections are closed, so no handler
// fails on a closed connection.
func BubbleWith(t *testing.T, opts server.Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	BubbleAt(t, time.Time{}, opts, f)
}

// BubbleAt is like BubbleWith, and the server starts at a time. The default is the beginning of the year 2000. A
// request can have unix milliseconds only from September 2001 on: see message.ParseTime.
func BubbleAt(t *testing.T, start time.Time, opts server.Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	opts.DontListen, opts.JetStream = true, true // rule 2
	if opts.StoreDir == "" {
		opts.StoreDir = Dir(t) // rule 3
	}
	parallel := isParallel(t)
	DropTimers()
	addBubbles(1)
	defer addBubbles(-1)
	var s *Server
	defer func() {
		if s != nil && s.reconnected.Load() {
			DropTimers() // tests in real time use the pool, too
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		s = RunWith(t, opts)
		s.parallel = parallel
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

// DropTimers empties nats.go's pool of timers. A reconnect takes a timer out of the pool and puts the timer back, and a
// bubble that gets the timer of an earlier bubble panics. DropTimers does not help if bubbles run in parallel, so a
// reconnect in a parallel test is an error: see Dial.
func DropTimers() {
	runtime.GC() // the contents of a sync.Pool survive one collection
	runtime.GC()
}

// isParallel reports whether a test runs in parallel with others: Setenv panics in such tests. A test that isParallel
// has found to run alone can no longer call t.Parallel.
func isParallel(t *testing.T) (parallel bool) {
	defer func() { parallel = recover() != nil }()
	t.Setenv("NATSTEST_ALONE", "1")
	return false
}

func Handle(t testing.TB, nc *nats.Conn, subject string, handler nats.MsgHandler) {
	t.Helper()
	_, err := nc.Subscribe(subject, handler)
	NoError(t, err)
}

// Flush waits until the server has received all earlier messages of a connection. Unlike nc.Flush, it takes no timer
// out of the pool of nats.go: with nc.Flush, parallel bubbles sometimes panic (see DropTimers).
func Flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// Request is like nc.RequestMsg, but takes no timer out of the pool of nats.go.
func Request(nc *nats.Conn, m *nats.Msg, within time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return nc.RequestMsgWithContext(ctx, m)
}

// Server is a server in this process. A test can stop the server and start it again with the same data.
type Server struct {
	t       testing.TB
	opts    server.Options
	current atomic.Pointer[server.Server]

	parallel    bool        // other bubbles may run at the same time
	reconnected atomic.Bool // a connection was opened again
}

// Run starts a server without a listener, with the data in dir. The server stops when the test ends.
func Run(t testing.TB, dir string) *Server {
	t.Helper()
	return RunWith(t, server.Options{DontListen: true, JetStream: true, StoreDir: dir})
}

// RunListening starts a server that listens on a free port, for processes and tests in real time.
func RunListening(t testing.TB) *Server {
	t.Helper()
	return RunWith(t, server.Options{Host: "127.0.0.1", Port: -1, JetStream: true})
}

// RunWith starts a server with these options and the options that all tests need. The server stops when the test ends.
// Without a directory in the options, the server gets a new one.
func RunWith(t testing.TB, opts server.Options) *Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	// Without the system account and the default SyncInterval, the server has less periodic work: statistics, and the
	// synchronisation of each stream to the disk. This work would take most of the processor time of a month of fake time.
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

// Start starts a stopped server with its data.
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

// Dial connects to the running server. It makes a Server a nats.CustomDialer. A reconnect in a parallel test of fake
// time fails the test, because the process would sometimes panic: see DropTimers.
func (s *Server) Dial(string, string) (net.Conn, error) {
	ns := s.current.Load()
	if ns == nil {
		return nil, net.ErrClosed
	}
	if isReconnect() {
		s.reconnected.Store(true)
		if s.parallel {
			s.t.Error("a connection was opened again in a parallel test of fake time: remove t.Parallel, see DropTimers")
		}
	}
	if s.opts.DontListen {
		return ns.InProcessConn()
	}
	return net.Dial("tcp", ns.Addr().String())
}

// isReconnect reports whether nats.go opens a connection again, from the stack of its caller.
func isReconnect() bool {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "(*Conn).doReconnect") {
			return true
		}
		if !more {
			return false
		}
	}
}

// Connect returns a connection that reconnects after a restart of the server. The connection is closed when the test
// ends.
func (s *Server) Connect(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	opts = append([]nats.Option{
		nats.SetCustomDialer(s), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond),
		nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect("nats://127.0.0.1:4222", opts...) // an IP address needs no DNS lookup
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
