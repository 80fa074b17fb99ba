package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"delaybroker/broker/budget"
	"delaybroker/broker/lane"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/role"
)

// work runs one worker for each lane until ctx ends.
func (b *Broker) work(ctx context.Context, lanes []streams.Spec, room *budget.Budget, i *instance) error {
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
func (b *Broker) serve(ctx context.Context, l streams.Spec, room *budget.Budget, i *instance, settled func()) error {
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
		if l.Kind == streams.Paused {
			known()
			settled()
			err = b.newPauseLanes(i, l, held, room, counts).run(ctx)
		} else {
			var next timer.Cursor
			if l.Kind == streams.Timers {
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
func (b *Broker) readCursor(ctx context.Context, s *role.Stream) timer.Cursor {
	c, err := s.ReadCursor(ctx)
	if err != nil {
		b.log.Warn("the cursor of the timers cannot be read, or somebody else wrote it; reading all timers anew", "err", err)
	}
	return c
}

// newWorker prepares a worker, and its reader, for a lane that is ours.
func (b *Broker) newWorker(
	i *instance, l streams.Spec, by lease.Lease, next timer.Cursor, room *budget.Budget, counts *stats.Lane,
	settled func(),
) *worker {
	from, log := by.From(), b.log.With("stream", l.Stream)
	if l.Kind == streams.Timers && (next.Created.Equal(from.Created) || from.Next == 0) {
		from.Next, from.Created = max(from.Next, next.Next), next.Created
	}
	reader := lane.NewReader(lane.ReaderConfig{
		Conn: b.conns.Read, JetStream: b.reading, APIPrefix: b.cfg.APIPrefix, Inbox: link.Inbox(b.conns.Read),
		Stream: l.Stream, Filter: laneFilter(b.names, l), Delay: l.Delay, From: from.Next,
		FromCreated: from.Created, Buffer: room.Buffer(), Log: b.log, Sparse: l.Kind == streams.Timers,
	})
	share := budget.FreeShare
	if l.Kind == streams.Retry {
		share = budget.RetryShare
	}
	w := newWorker(i, l, planOf(b.cfg, l), by, reader, room.Open(share), counts, log)
	w.reading.from = from.Next
	w.adopted = settled
	w.backlog.holdBack()
	return w
}

// laneFilter is the subjects of a lane that is only a part of its stream; it is empty for the others.
func laneFilter(names message.Names, l streams.Spec) string {
	if l.Kind != streams.Paused {
		return ""
	}
	return names.PauseFilter(l.Name)
}
