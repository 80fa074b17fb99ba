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

// serve works one lane while this instance owns it, until ctx ends. It calls settled when the lane is being read, or
// another instance owns it, or ctx has ended.
func (e *Engine) serve(ctx context.Context, l streams.Spec, settled func()) error {
	defer settled()
	known := sync.OnceFunc(e.order.Decide)
	defer known()
	e.roster.countOf(l)
	for {
		held, err := e.Leaser.Acquire(ctx, l.Stream, func() { known(); settled() })
		if err != nil {
			return nil // ctx ended
		}
		e.log.Debug("this instance owns a lane", "stream", l.Stream)
		left, err := e.own(ctx, l, held, known, settled)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Timeout)
		if failed := held.Release(release, left); failed != nil {
			err = errors.Join(err, fmt.Errorf("release %s: %w", l.Stream, failed))
		}
		cancel()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			e.log.Warn("no longer the owner of a lane", "stream", l.Stream, "err", err)
		} else {
			e.log.Debug("no longer the owner of a lane", "stream", l.Stream)
		}
	}
}

// own works a lane until ctx or the lease ends. It returns the position at which the next owner begins. It chooses the
// laneKind; no other code of the loop compares kinds.
func (e *Engine) own(
	ctx context.Context, l streams.Spec, held lease.Lease, known, settled func(),
) (left lease.Cursor, err error) {
	var kind laneKind = plainLane{}
	from := held.Cursor()
	switch l.Kind {
	case streams.Paused:
		known()
		settled()
		return lease.Cursor{}, newPauseLanes(e, l, held).run(ctx)
	case streams.Retry:
		kind = retryLane{}
	case streams.Timers:
		next, err := e.Timers.ReadCursor(ctx) // after an error, reading begins with the first entry
		if err != nil {
			e.log.Warn("cannot read a valid cursor of the timers; reading all timers", "err", err)
		}
		if next.Created.Equal(from.Created) || from.Next == 0 {
			from = lease.Cursor{Next: max(from.Next, next.Next), Created: next.Created}
		}
		kind = newTimersLane(e.Timers, e.names.TimersCursor())
	}
	w := e.newWorker(l, kind, held, from)
	w.adopted = settled
	w.backlog.holdBack()
	known()
	e.roster.enlist(w)
	defer e.roster.dismiss(w)
	err = w.run(ctx)
	return w.position(), err
}
