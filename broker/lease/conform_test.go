package lease

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// kind is a kind of leaser.
type kind struct {
	// shared is true if the instances communicate, and take over each other's lanes with their cursors.
	shared bool
	// start starts a leaser that runs until stop is called, or the test ends. The leaser owns the given lanes, unless
	// shared is true.
	start func(lanes ...string) (l Leaser, stop func())
}

// conform runs a test of the contract of Leaser and Lease for each kind of leaser, in a bubble.
func conform(t *testing.T, f func(t *testing.T, k kind)) {
	t.Helper()
	t.Run("Static", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, kind{start: func(lanes ...string) (Leaser, func()) {
				l := Static{Lanes: lanes}
				return l, startLeaser(t, l)
			}})
		})
	})
	t.Run("Shared", func(t *testing.T) {
		withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			f(t, kind{shared: true, start: func(...string) (Leaser, func()) {
				l := NewShared(conformConfig(t, s))
				return l, startLeaser(t, l)
			}})
		})
	})
}

func conformConfig(t *testing.T, s *natstest.Server) SharedConfig {
	return SharedConfig{
		Conn: s.Connect(nats.ReconnectBufSize(-1)), APIPrefix: "$JS.API", Subjects: testSubjects, MaxOwners: 1, Host: "h",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// startLeaser runs a leaser until stop is called, or the test ends.
func startLeaser(t *testing.T, l Leaser) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func acquire(t *testing.T, l Leaser, lane string, timeout time.Duration) Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	got, err := l.Acquire(ctx, lane, func() {})
	if err != nil {
		t.Fatalf("acquire %s: %v", lane, err)
	}
	return got
}

// receiveTicks receives the ticks of a lease until it ends, as the worker of a lane does.
func receiveTicks(t *testing.T, l Lease) {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	go func() {
		for {
			select {
			case <-l.Ticks():
			case <-l.Done():
				return
			case <-end:
				return
			}
		}
	}()
}

func isDone(l Lease) bool {
	synctest.Wait()
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}
