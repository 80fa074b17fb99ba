package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"delaybroker/broker/alarm"
	"delaybroker/broker/budget"
	"delaybroker/broker/figures"
	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// work runs one worker for each lane until ctx ends.
func (b *Broker) work(ctx context.Context, lanes []layout.Spec, room *budget.Budget, i *instance) error {
	errs := make([]error, len(lanes))
	var settled, all sync.WaitGroup
	b.order.Expect(len(lanes))
	for n, l := range lanes {
		settled.Add(1)
		all.Go(func() { errs[n] = b.serve(ctx, l, room, i, sync.OnceFunc(settled.Done)) })
	}
	all.Go(func() {
		if settled.Wait(); ctx.Err() == nil {
			close(b.ready)
		}
	})
	all.Wait()
	return errors.Join(errs...)
}

// serve works one lane whenever it is ours. It calls settled when the lane is being read, is somebody else's, or will
// not be worked any more.
func (b *Broker) serve(ctx context.Context, l layout.Spec, room *budget.Budget, i *instance, settled func()) error {
	defer settled()
	known := sync.OnceFunc(b.order.Decide)
	defer known()
	counts := b.roster.countOf(l)
	for {
		held, err := b.leaser.Acquire(ctx, l.Stream, func() { known(); settled() })
		if err != nil {
			return nil // ctx ended
		}
		b.log.Debug("owner of a lane", "stream", l.Stream)
		var left lease.Cursor
		if l.Kind == layout.Paused {
			known()
			settled()
			err = b.newPauseLanes(i, l, held, room, counts).run(ctx)
		} else {
			var next timer.Cursor
			if l.Kind == layout.Timers {
				next = b.readCursor(ctx, i.timers)
			}
			w := b.newWorker(i, l, held, next, room, counts, settled)
			known()
			b.roster.enlist(w)
			err = w.run(ctx)
			b.roster.dismiss(w)
			left = w.leftOff()
		}
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
		if e := held.Release(release, left); e != nil {
			err = errors.Join(err, fmt.Errorf("release %s: %w", l.Stream, e))
		}
		cancel()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			b.log.Warn("no longer the owner of a lane", "stream", l.Stream, "err", err)
		} else {
			b.log.Debug("no longer the owner of a lane", "stream", l.Stream)
		}
	}
}

// readCursor reads the cursor of the timers' stream. Without a good one, reading begins with the first entry.
func (b *Broker) readCursor(ctx context.Context, s *alarm.Stream) timer.Cursor {
	c, err := s.ReadCursor(ctx)
	if err != nil {
		b.log.Warn("the cursor of the timers cannot be read, or somebody else wrote it; reading all timers anew", "err", err)
	}
	return c
}

// newWorker prepares a worker, and its reader, for a lane that is ours.
func (b *Broker) newWorker(
	i *instance, l layout.Spec, by lease.Lease, next timer.Cursor, room *budget.Budget, counts *figures.Lane,
	settled func(),
) *worker {
	from, log := by.From(), b.log.With("stream", l.Stream)
	if l.Kind == layout.Timers && (next.Created.Equal(from.Created) || from.Next == 0) {
		from.Next, from.Created = max(from.Next, next.Next), next.Created
	}
	reader := lane.NewReader(lane.ReaderConfig{
		Conn: b.conns.Read, JetStream: b.reading, APIPrefix: b.cfg.APIPrefix, Inbox: link.Inbox(b.conns.Read),
		Stream: l.Stream, Filter: laneFilter(b.names, l), Delay: l.Delay, From: from.Next,
		FromCreated: from.Created, Buffer: room.Buffer(), Log: b.log, Sparse: l.Kind == layout.Timers,
	})
	share := budget.FreeShare
	if l.Kind == layout.Retry {
		share = budget.RetryShare
	}
	w := newWorker(i, l, planOf(b.cfg, l), by, reader, room.Open(share), counts, log)
	w.reading.from = from.Next
	w.adopted = settled
	w.backlog.holdBack()
	return w
}

// laneFilter is the subjects of a lane that is only a part of its stream; it is empty for the others.
func laneFilter(names message.Names, l layout.Spec) string {
	if l.Kind != layout.Paused {
		return ""
	}
	return names.PauseFilter(l.Name)
}
