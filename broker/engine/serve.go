package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lease"
	"delaybroker/broker/streams"
)

// restartPause is the time after which a loop starts again that has ended with an error.
const restartPause = time.Second

// serve works all lanes whenever this instance is active, until ctx ends. It calls ready when this instance reads all
// lanes, and when another instance is active.
func (e *Engine) serve(ctx context.Context, lanes []streams.Spec, ready func()) error {
	for {
		held, err := e.Leaser.Acquire(ctx, ready)
		if err != nil {
			return nil // ctx ended
		}
		e.log.Info("this instance is active")
		e.Pauses.Refresh() // a stand-by may have missed an announcement
		cursors, err := e.workAll(ctx, lanes, held, ready)
		releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Timeout)
		if releaseErr := held.Release(releaseCtx, cursors); releaseErr != nil {
			err = errors.Join(err, releaseErr)
		}
		cancel()
		e.lateAnswers.Wait()
		if ctx.Err() != nil {
			return err
		}
		e.log.Warn("this instance is not active any more, and stands by", "err", err)
	}
}

// workAll works all lanes until ctx or the lease ends. It returns the cursors at which the next active instance begins.
func (e *Engine) workAll(
	ctx context.Context, lanes []streams.Spec, held lease.Lease, ready func(),
) (map[string]lease.Cursor, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	e.watermark.expect(len(lanes))
	var starting, running, watching sync.WaitGroup
	cursors, errs := make([]lease.Cursor, len(lanes)), make([]error, len(lanes))
	for n, l := range lanes {
		starting.Add(1)
		running.Go(func() { cursors[n], errs[n] = e.workLane(working, l, held, sync.OnceFunc(starting.Done)) })
	}
	watching.Go(func() {
		if starting.Wait(); working.Err() == nil {
			ready()
		}
	})
	e.watch.begin(lanes, time.Now())
	watching.Go(func() { e.watchLoops(working, held) })
	running.Wait()
	stop()
	watching.Wait()
	e.watch.begin(nil, time.Now())
	all := make(map[string]lease.Cursor)
	for n, l := range lanes {
		all[l.Stream] = cursors[n]
	}
	return all, errors.Join(errs...)
}

// workLane works a lane until ctx or the lease ends. A loop that ends with an error before is logged, and starts again.
// WorkLane returns the cursor at which the next active instance begins. It calls ready when the lane is read, and at
// the end.
func (e *Engine) workLane(
	ctx context.Context, l streams.Spec, held lease.Lease, ready func(),
) (next lease.Cursor, err error) {
	defer ready()
	decided := sync.OnceFunc(e.watermark.Decide)
	defer decided()
	next = held.Cursor(l.Stream)
	for {
		at, err := e.work(ctx, l, held, next, decided, ready)
		if at.Next > 0 {
			next = at
		}
		select {
		case <-held.Done():
			return next, err
		case <-ctx.Done():
			return next, err
		default:
		}
		e.log.Error("the loop of a lane has ended, and starts again", "stream", l.Stream, "err", err)
		select {
		case <-held.Done():
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

// work runs the loop of a lane once. It chooses the laneKind; no other code of the loop compares kinds.
func (e *Engine) work(
	ctx context.Context, l streams.Spec, held lease.Lease, from lease.Cursor, decided, ready func(),
) (next lease.Cursor, err error) {
	var kind laneKind = plainLane{}
	switch l.Kind {
	case streams.Paused:
		decided()
		ready()
		return lease.Cursor{}, newPauseLanes(e, l, held).run(ctx)
	case streams.Retry:
		kind = retryLane{}
	case streams.Timers:
		stored, err := e.Timers.ReadCursor(ctx) // after an error, stored is zero
		if err != nil {
			e.log.Warn("cannot read a valid cursor of the timers; reading begins at the previous instance's position, "+
				"if known, or with all timers", "err", err)
		}
		if stored.Created.Equal(from.Created) || from.Next == 0 {
			from = lease.Cursor{Next: max(from.Next, stored.Next), Created: stored.Created}
		}
		kind = newTimersLane(e.Timers, e.names.TimersCursor())
	}
	w := e.newWorker(l, kind, held, from)
	w.onEpoch = ready
	w.backlog.holdBack()
	decided()
	e.roster.add(w)
	defer e.roster.remove(w)
	if err = w.work(ctx); err != nil {
		err = fmt.Errorf("%s: %w", l.Stream, err)
	}
	return w.position(), err
}
