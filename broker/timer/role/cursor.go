package role

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// StoreCursor stores a cursor, and removes the earlier cursors. An earlier active instance may overwrite the
// present one's cursor with a lower one. Then the next active instance reads some entries again.
func (s *Stream) StoreCursor(ctx context.Context, c timer.Cursor) error {
	subject := s.Policy.Names.TimersCursor()
	header := message.Header{}
	reply := s.Publish(ctx, s.sealed(subject, header, []byte(c.String())))
	if err := reply.Failure(); err != nil {
		return err
	}
	_, err := s.removeEntries(ctx, subject, 0, removal{entry: reply.Ack.Sequence, reach: below})
	return err
}

// ReadCursor reads the stored cursor. The result is zero if none is stored.
func (s *Stream) ReadCursor(ctx context.Context) (timer.Cursor, error) {
	c, _, err := s.readCursor(ctx)
	return c, err
}

// readCursor also returns the entry of the cursor. If that entry is not a broker's cursor, the error is errCursor.
func (s *Stream) readCursor(ctx context.Context) (c timer.Cursor, in message.Incoming, err error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	m, err := s.API.Last(ctx, s.Name(), s.Policy.Names.TimersCursor())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return c, in, nil
	}
	if err != nil {
		return c, in, fmt.Errorf("read the cursor of the timers: %w", err)
	}
	in = m.Incoming(s.Name())
	c, ok := timer.ParseCursor(m.Data, m.Sequence)
	if !ok || in.Undecodable || !entry.IsSealedCursor(s.Policy, in) {
		return timer.Cursor{}, in, errCursor
	}
	return c, in, nil
}
