package broker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// This file keeps the cursor of the timers' lane: what is armed stays in its stream, so a purge would be wrong.

// storeCursor stores how far the timers' stream has been read, and waits for the answer. The cursor of an owner that
// has lost the lane is lower than its successor's, and costs only time.
func (w *worker) storeCursor(ctx context.Context, todo commit) error {
	subject := w.shared.names.Armed()
	body := []byte(timer.Cursor{Next: todo.upTo + 1, Created: todo.known.Created}.String())
	header := message.Header{message.HeaderFormat: {strconv.Itoa(message.Format)}}
	w.shared.keys.policy.Keys.SealMessage(subject, header, body, time.Now())
	stream, answered := w.shared.names.TimersStream(), make(chan error, 1)
	var stored uint64
	m := &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}
	w.shared.write.Publish(m, commitTimeout, func(answer *nats.Msg, err error) (again bool) {
		if err == nil {
			ack, ok := jsapi.AckOf(answer, stream)
			if !ok {
				return true
			}
			if stored = ack.Sequence; ack.Refused() {
				err = errors.New(ack.Description)
			}
		}
		answered <- err
		return false
	})
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return w.shared.removeEntries(ctx, timing{subject: subject, entry: stored, keep: true})
}

// readCursor reads the cursor of the timers' stream. Without a good one, reading begins with the first entry.
func (b *Broker) readCursor(ctx context.Context) timer.Cursor {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	stream, subject := b.streams.names.TimersStream(), b.streams.names.Armed()
	m, err := b.jetstream.api.Last(ctx, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return timer.Cursor{}
	}
	header, bad := m.Header()
	if err == nil && bad == nil {
		in := message.Incoming{
			Stream: stream, Sequence: m.Sequence, At: m.Time, Subject: subject, Header: message.Header(header), Data: m.Data,
		}
		if c, ok := timer.ParseCursor(m.Data, m.Sequence); ok && b.streams.keys.policy.ProvenCursor(in) {
			return c
		}
	}
	b.log.Warn("the cursor of the timers cannot be read, or somebody else wrote it; reading all timers anew", "err", err)
	return timer.Cursor{}
}
