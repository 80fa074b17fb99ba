package service

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Listener receives requests for one loop, in the order of their arrival. Create a Listener with NewListener.
type Listener struct {
	conn *nats.Conn
	msgs chan *nats.Msg // never closed
	subs []*nats.Subscription
}

// NewListener returns a Listener, and starts nothing. At most this many messages may wait; further ones are dropped.
func NewListener(conn *nats.Conn, most int) *Listener {
	return &Listener{conn: conn, msgs: make(chan *nats.Msg, most)}
}

// Subscribe subscribes until Each ends: as a member of a group, or alone if the group is empty. If it fails, it ends
// all subscriptions.
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

// Each calls receive with each message until ctx ends. Then it unsubscribes, and calls receive with the messages that
// wait.
func (l *Listener) Each(ctx context.Context, receive func(*nats.Msg)) {
	for {
		select {
		case m := <-l.msgs:
			receive(m)
		case <-ctx.Done():
			l.stop()
			for range len(l.msgs) {
				receive(<-l.msgs)
			}
			return
		}
	}
}

func (l *Listener) stop() {
	for _, sub := range l.subs {
		_ = sub.Unsubscribe() // it fails if the connection is closed
	}
}
