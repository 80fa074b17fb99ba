package service

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Listener receives requests for one loop, in the order in which they come. Make one with NewListener.
type Listener struct {
	conn *nats.Conn
	msgs chan *nats.Msg // closed by nobody
	subs []*nats.Subscription
}

// NewListener starts nothing. So many messages may wait to be looked at; further ones are dropped.
func NewListener(conn *nats.Conn, most int) *Listener {
	return &Listener{conn: conn, msgs: make(chan *nats.Msg, most)}
}

// Subscribe subscribes until Each ends: as one of a group, or by itself where the group is empty. When it fails,
// nothing is subscribed any more.
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

// Each receives until ctx ends, and then, with nothing subscribed any more, what has come already.
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
		_ = sub.Unsubscribe() // it fails when the connection is closed
	}
}
