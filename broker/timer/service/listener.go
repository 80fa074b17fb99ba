package service

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/ratelog"
)

// warningInterval is the minimum interval between warnings about ignored messages.
const warningInterval = time.Minute

// Listener receives requests, and Serve passes them on in the order of their arrival. It ignores messages without an
// allowed reply subject. Create a Listener with NewListener.
type Listener struct {
	conn          *nats.Conn
	replyPrefixes []string
	log           *slog.Logger
	msgs          chan *nats.Msg // never closed
	subs          []*nats.Subscription
	warnings      ratelog.Limit // only for the goroutine that calls Serve
}

// NewListener returns a Listener without subscriptions. At most maxWaiting messages wait for Serve; further messages
// are dropped.
func NewListener(conn *nats.Conn, replyPrefixes []string, maxWaiting int, log *slog.Logger) *Listener {
	return &Listener{conn: conn, replyPrefixes: replyPrefixes, log: log, msgs: make(chan *nats.Msg, maxWaiting)}
}

// Subscribe subscribes until Serve ends: as a member of a queue group, or without a group if group is empty. If one
// subscription fails, Subscribe ends all subscriptions of the Listener.
func (l *Listener) Subscribe(group string, subjects ...string) error {
	for _, subject := range subjects {
		sub, err := l.conn.ChanQueueSubscribe(subject, group, l.msgs)
		if err != nil {
			l.stop()
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		l.subs = append(l.subs, sub)
	}
	return nil
}

// Serve starts the workers, and passes requests to receive until ctx ends. Then it ends the subscriptions, passes the
// waiting requests to receive, calls closing, and waits for the workers. Closing must make the workers return when they
// have carried out all received requests. If the workers need longer than grace, their context ends.
func (l *Listener) Serve(
	ctx context.Context, grace time.Duration, receive func(*nats.Msg), workers []func(context.Context), closing func(),
) {
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var working sync.WaitGroup
	for _, work := range workers {
		working.Go(func() { work(base) })
	}
	for ctx.Err() == nil {
		select {
		case m := <-l.msgs:
			l.pass(m, receive)
		case <-ctx.Done():
		}
	}
	l.stop()
	for range len(l.msgs) {
		l.pass(<-l.msgs, receive)
	}
	closing()
	deadline := time.AfterFunc(grace, abandon)
	defer deadline.Stop()
	working.Wait()
}

// pass passes a message to receive if the message's reply subject is allowed.
func (l *Listener) pass(m *nats.Msg, receive func(*nats.Msg)) {
	if !strings.ContainsAny(m.Reply, "*> ") {
		for _, prefix := range append([]string{"_INBOX", "_R_"}, l.replyPrefixes...) {
			if rest, ok := strings.CutPrefix(m.Reply, prefix+"."); ok && rest != "" {
				receive(m)
				return
			}
		}
	}
	if more, ok := l.warnings.Allow(warningInterval); ok {
		l.log.Warn("a request is ignored: its reply subject is not allowed (DELAY_REPLY_PREFIXES)",
			"subject", m.Subject, "reply", m.Reply, "more", more)
	}
}

func (l *Listener) stop() {
	for _, sub := range l.subs {
		_ = sub.Unsubscribe() // it fails if the connection is closed
	}
}
