package client

import (
	"context"
	"fmt"
	"time"

	"delaybroker/broker/timer/entry"
)

// A Receipt identifies a stored message. Unless a client cancels or replaces it, a stored message reaches its target or
// becomes a dead letter.
type Receipt struct {
	Stream    string
	Sequence  uint64
	Duplicate bool // a message with this ID was stored before; the delay of that message applies

	// Due is the due time of the message. If Accepted is zero, Due is an estimate by the clock of this host.
	Due time.Time

	// ID is the message's Delay-Id, and Accepted the time of its storage. [Client.Lookup] sets both.
	ID       string
	Accepted time.Time

	// Key is the key of a named timer, or the key that Cancelable generated. With Key and Sequence another process can
	// call [Client.Cancel].
	Key    string
	target string
	client *Client // nil without a key
}

// Lookup returns the receipt with ID, Accepted, and the exact Due. It reads the message from the stream's leader. The
// client needs permission to publish to $JS.API.STREAM.MSG.GET.*. If the message is no longer in its first stream, the
// error is ErrGone. A broker soon moves each message out of the intake.
func (c *Client) Lookup(ctx context.Context, r Receipt) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	in, err := c.store.ReadMessage(ctx, r.Stream, r.Sequence)
	if err != nil {
		return r, fmt.Errorf("read message %d of %s: %w", r.Sequence, r.Stream, err)
	}
	request, problem := entry.ParseAny(c.policy, in)
	if problem != nil {
		return r, fmt.Errorf("read message %d of %s: %w", r.Sequence, r.Stream, problemError(problem))
	}
	r.ID, r.Accepted, r.Due = request.ID, request.Accepted, request.Due
	return r, nil
}
