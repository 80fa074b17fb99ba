package link

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// askInterval is the interval at which Answers asks on each connection.
	askInterval = time.Second
	// maxSilence is the time from a request without an answer after which a connection counts as useless. It is longer
	// than a pause of 2 s, after which the same instance should continue. nats.go itself notices a frozen connection after
	// 10 s or more.
	maxSilence = 3 * time.Second
	// maxReserveSilence replaces maxSilence on a stand-by. It is shorter by more than askInterval, so that a stand-by
	// notices a common cause before the active instance does.
	maxReserveSilence = 1500 * time.Millisecond
	// reopenAfter is the time after which a connection is opened again on which the server answers, but JetStream does
	// not. It is longer than an election. If no connection helps, this happens every reopenInterval.
	reopenAfter, reopenInterval = 10 * time.Second, 30 * time.Second
	// pingTimeout is the maximum time for the server's answer to a ping, after a request without an answer.
	pingTimeout = 500 * time.Millisecond
)

// Answers knows on which connections the server answers. A connection may be useless although it counts as up. On the
// connections Read and Control, only an answer of JetStream counts.
type Answers struct {
	links []*answers
	log   *slog.Logger
}

type answers struct {
	name   string
	conn   *nats.Conn
	ask    func(context.Context) error
	silent atomic.Pointer[time.Time] // the first of the latest requests that has no answer; nil if the latest has one

	// reopenAt is the time at which the connection is opened again: the server answers on it, but JetStream does not. It
	// is zero otherwise. Only Run uses it.
	reopenAt time.Time
}

// NewAnswers returns the Answers of all connections. Request is the subject of a request of JetStream's API that the
// connections Read and Control may send. NewAnswers sends nothing.
func NewAnswers(l Links, request string, log *slog.Logger) *Answers {
	a := &Answers{log: log}
	l.Each(func(name string, nc *nats.Conn) {
		ask := nc.FlushWithContext
		if nc == l.Read || nc == l.Control {
			ask = func(ctx context.Context) error {
				_, err := nc.RequestWithContext(ctx, request, nil)
				return err
			}
		}
		a.links = append(a.links, &answers{name: name, conn: nc, ask: ask})
	})
	return a
}

// Run asks on each connection until ctx ends.
func (a *Answers) Run(ctx context.Context) {
	var asking sync.WaitGroup
	for _, l := range a.links {
		asking.Go(func() { a.watch(ctx, l) })
	}
	asking.Wait()
}

func (a *Answers) watch(ctx context.Context, l *answers) {
	ticker := time.NewTicker(askInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		l.silent.CompareAndSwap(nil, new(time.Now()))
		if err := l.request(ctx, l.ask, maxSilence); err == nil {
			l.silent.Store(nil)
			l.reopenAt = time.Time{}
		} else if l.mustReopen(ctx) {
			a.log.Warn("JetStream does not answer on a connection that is up; opening the connection again", "link", l.name,
				"err", err, "since", l.silent.Load().UTC())
			_ = l.conn.ForceReconnect() // fails only on a closed connection
		}
	}
}

func (l *answers) request(ctx context.Context, send func(context.Context) error, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return send(ctx)
}

// mustReopen reports whether the connection must be opened again. The caller has sent a request without an answer. A
// connection on which the server does not answer either is up to nats.go.
func (l *answers) mustReopen(ctx context.Context) bool {
	now := time.Now()
	switch err := l.request(ctx, l.conn.FlushWithContext, pingTimeout); {
	case err != nil:
		l.reopenAt = time.Time{}
	case l.reopenAt.IsZero():
		l.reopenAt = now.Add(reopenAfter)
	case !now.Before(l.reopenAt):
		l.reopenAt = now.Add(reopenInterval)
		return true
	}
	return false
}

// Problem returns an error that names a connection on which a request has had no answer for maxSilence, or nil. For a
// stand-by, the time is maxReserveSilence.
func (a *Answers) Problem(now time.Time, standby bool) error {
	limit := maxSilence
	if standby {
		limit = maxReserveSilence
	}
	for _, l := range a.links {
		if since := l.silent.Load(); since != nil && now.Sub(*since) >= limit {
			return fmt.Errorf("the server has not answered on the connection %s for %s", l.name,
				now.Sub(*since).Round(time.Millisecond))
		}
	}
	return nil
}
