package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lease"
	"delaybroker/broker/streams"
)

// serve works one lane whenever this instance owns the lane, until ctx ends. It calls ready when this instance reads
// the lane, when another instance owns the lane, and when ctx has ended.
func (e *Engine) serve(ctx context.Context, l streams.Spec, ready func()) error {
	defer ready()
	decideOwner := sync.OnceFunc(e.watermark.Decide)
	defer decideOwner()
	e.roster.countOf(l)
	for {
		held, err := e.Leaser.Acquire(ctx, l.Stream, func() { decideOwner(); ready() })
		if err != nil {
			return nil // ctx ended
		}
		e.log.Debug("this instance owns a lane", "stream", l.Stream)
		next, err := e.workLane(ctx, l, held, decideOwner, ready)
		releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Timeout)
		if releaseErr := held.Release(releaseCtx, next); releaseErr != nil {
			err = errors.Join(err, fmt.Errorf("release %s: %w", l.Stream, releaseErr))
		}
		cancel()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			e.log.Warn("this instance is no longer the owner of a lane, and tries to own it again",
				"stream", l.Stream, "err", err)
		} else {
			e.log.Debug("this instance is no longer the owner of a lane, and tries to own it again", "stream", l.Stream)
		}
	}
}

// workLane works a lane until ctx or the lease ends. It returns the cursor at which the next owner begins. It chooses
// the laneKind; no other code of the loop compares kinds.
func (e *Engine) workLane(
	ctx context.Context, l streams.Spec, held lease.Lease, decideOwner, ready func(),
) (next lease.Cursor, err error) {
	var kind laneKind = plainLane{}
	from := held.Cursor()
	switch l.Kind {
	case streams.Paused:
		decideOwner()
		ready()
		return lease.Cursor{}, newPauseLanes(e, l, held).run(ctx)
	case streams.Retry:
		kind = retryLane{}
	case streams.Timers:
		stored, err := e.Timers.ReadCursor(ctx) // after an error, stored is zero
		if err != nil {
			e.log.Warn("cannot read a valid cursor of the timers; reading begins at the previous owner's position, if known, "+
				"or with all timers", "err", err)
		}
		if stored.Created.Equal(from.Created) || from.Next == 0 {
			from = lease.Cursor{Next: max(from.Next, stored.Next), Created: stored.Created}
		}
		kind = newTimersLane(e.Timers, e.names.TimersCursor())
	}
	w := e.newWorker(l, kind, held, from)
	w.onEpoch = ready
	w.backlog.holdBack()
	decideOwner()
	e.roster.add(w)
	defer e.roster.remove(w)
	err = w.run(ctx)
	return w.position(), err
}
