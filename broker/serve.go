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
		left, err := b.own(ctx, l, held, room, i, counts, known, settled)
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

// own works a lane that is ours until ctx or the lease ends, and returns where a successor starts. It makes the laneKind;
// the loop compares kinds nowhere else.
func (b *Broker) own(
	ctx context.Context, l streams.Spec, held lease.Lease, room *budget.Budget, i *instance, counts *stats.Lane,
	known, settled func(),
) (left lease.Cursor, err error) {
	var kind laneKind = plainLane{}
	from := held.From()
	switch l.Kind {
	case streams.Paused:
		known()
		settled()
		return lease.Cursor{}, b.newPauseLanes(i, l, held, room, counts).run(ctx)
	case streams.Retry:
		kind = retryLane{}
	case streams.Timers:
		if next := b.readCursor(ctx, i.timers); next.Created.Equal(from.Created) || from.Next == 0 {
			from = lease.Cursor{Next: max(from.Next, next.Next), Created: next.Created}
		}
		kind = newTimersLane(i.timers, b.names.Armed())
	}
	w := b.newWorker(i, l, kind, held, from, room, counts, settled)
	known()
	b.roster.enlist(w)
	defer b.roster.dismiss(w)
	err = w.run(ctx)
	return w.leftOff(), err
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
	i *instance, l streams.Spec, kind laneKind, by lease.Lease, from lease.Cursor, room *budget.Budget,
	counts *stats.Lane, settled func(),
) *worker {
	source := kind.source()
	reader := lane.NewReader(lane.ReaderConfig{
		Conn: b.conns.Read, JetStream: b.reading, APIPrefix: b.cfg.APIPrefix, Inbox: link.Inbox(b.conns.Read),
		Stream: l.Stream, Filter: source.filter, Delay: l.Delay, From: from.Next,
		FromCreated: from.Created, Buffer: room.Buffer(), Log: b.log, Sparse: source.sparse,
	})
	w := newWorker(i, l, planOf(b.cfg, kind, l.Delay), by, reader, from.Next, room.Open(source.share), counts,
		b.log.With("stream", l.Stream))
	w.adopted = settled
	w.backlog.holdBack()
	return w
}
