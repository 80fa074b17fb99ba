package client

import (
	"context"
	"fmt"
	"time"
)

// A Receipt says where a message was stored. From then on it reaches its target, or the dead letters.
type Receipt struct {
	Stream    string
	Sequence  uint64
	Duplicate bool // it was stored before, under its ID: the delay is that of the first time

	// Due is when it will be delivered. Until Accepted is set it is by the clock of this host, and about right.
	Due time.Time

	// ID is its Delay-Id, and Accepted the time at which it was stored. An acknowledgement does not tell them: see
	// [Client.Look].
	ID       string
	Accepted time.Time
}

// Look returns the receipt with its ID, the time at which the message was stored, and exactly when it is due. It asks
// the stream's leader, which needs the right to publish to $JS.API.STREAM.MSG.GET.*, a round trip, and to be quick: a
// message in the intake has soon moved on. Then the error is ErrGone.
func (c *Client) Look(ctx context.Context, r Receipt) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	in, err := c.store.Stored(ctx, r.Stream, r.Sequence)
	if err != nil {
		return r, fmt.Errorf("look for message %d of %s: %w", r.Sequence, r.Stream, err)
	}
	request, problem := c.policy.Parse(in)
	if problem != nil {
		return r, fmt.Errorf("look for message %d of %s: %w", r.Sequence, r.Stream, refused(problem))
	}
	r.ID, r.Accepted, r.Due = request.ID, request.Accepted, request.Due
	return r, nil
}
