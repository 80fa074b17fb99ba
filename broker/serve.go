package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/timer"
)

// work runs one worker for each lane until ctx ends.
func (b *Broker) work(ctx context.Context, lanes []layout.Spec, room *budget, i *instance) error {
	errs := make([]error, len(lanes))
	var settled, all sync.WaitGroup
	b.muster.expect(len(lanes))
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
func (b *Broker) serve(ctx context.Context, l layout.Spec, room *budget, i *instance, settled func()) error {
	defer settled()
	known := sync.OnceFunc(b.muster.known)
	defer known()
	counts := b.roster.countOf(l)
	for {
		lease, err := b.leaser.Acquire(ctx, l.Stream, func() { known(); settled() })
		if err != nil {
			return nil // ctx ended
		}
		b.log.Debug("owner of a lane", "stream", l.Stream)
		var next timer.Cursor
		if l.Kind == layout.Timers {
			next = b.readCursor(ctx)
		}
		w := b.newWorker(i, l, lease, next, room, counts, settled)
		known()
		b.roster.enlist(w)
		err = w.run(ctx)
		b.roster.dismiss(w)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
		if e := lease.Release(release, w.leftOff()); e != nil {
			err = errors.Join(err, fmt.Errorf("release %s: %w", l.Stream, e))
		}
		cancel()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			b.log.Warn("no longer the owner of a lane", "stream", l.Stream, "err", err)
		} else {
			b.log.Info("no longer the owner of a lane", "stream", l.Stream)
		}
	}
}

// newWorker prepares a worker, and its reader, for a lane that is ours.
func (b *Broker) newWorker(
	i *instance, l layout.Spec, by lease.Lease, next timer.Cursor, room *budget, counts *laneCount, settled func(),
) *worker {
	from, log := by.From(), b.log.With("stream", l.Stream)
	if l.Kind == layout.Timers && (next.Created.Equal(from.Created) || from.Next == 0) {
		from.Next, from.Created = max(from.Next, next.Next), next.Created
	}
	reader := lane.NewReader(lane.ReaderConfig{
		Conn: b.conns.Read, JetStream: b.reading, APIPrefix: b.streams.cfg.APIPrefix, Inbox: inboxOf(b.conns.Read),
		Stream: l.Stream, Delay: l.Delay, From: from.Next, FromCreated: from.Created, Buffer: room.buffer, Log: b.log,
		Sparse: l.Kind == layout.Timers,
	})
	share := freeShare
	if l.Kind == layout.Retry {
		share = retryShare
	}
	w := newWorker(i, l, b.streams.plan(l), by, reader, room.open(share, nil), counts, log)
	w.reading.from = from.Next
	w.adopted = settled
	w.backlog.holdBack()
	return w
}
