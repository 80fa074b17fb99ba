package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/lease"
)

// commitIfDue begins a commit if one is due. It returns the time until the next one may be due.
func (w *worker) commitIfDue(local time.Time) time.Duration {
	if !w.safeToCommit() {
		return forever
	}
	due, wait := w.commits.due(&w.reading.cursor, local)
	if !due {
		return wait
	}
	todo := w.commits.begin(w.reading, local)
	w.early.Begin(w.clock.Leader(), local)
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), jsapi.Timeout)
		defer cancel()
		w.mail.Put(w.commits.carryOut(ctx, todo))
	})
	return forever
}

func (a commitAnswer) handle(w *worker, m moment) {
	done := w.commits.finish(a, w.reading, m.local)
	switch {
	case errors.Is(a.err, lane.ErrHistory):
		w.reading.Invalidate(a.epoch) // the reader may not have noticed that the stream was replaced
	case a.err != nil:
		w.notes.Log(slog.LevelWarn, "commit failed, will retry", "sequence", a.upTo, "err", a.err)
	case done:
		w.sampled(a.sample)
		w.countEarly(a.sample)
	}
}

// safeToCommit reports whether the lease is held and the consumer is alive, as far as the worker knows without a
// request to the server.
func (w *worker) safeToCommit() bool { return w.lease.Held() && w.reading.live() }

// drain ends the work on a lane, so that the next owner repeats no delivery. The reader must have stopped. drain waits
// for outstanding answers, and for the removal of the entries of timers whose messages have arrived. Then it commits,
// and removes the messages above the cursor that have arrived. The lease may be released only after drain has returned.
// drain takes at most the grace period.
func (w *worker) drain() error {
	w.stopped.Store(true)
	w.engine.Deliver.Recall(w)
	ctx, cancel := context.WithTimeout(context.Background(), w.engine.Settings.ShutdownGrace)
	defer cancel()
	local := time.Now()
	end, retry := local.Add(config.AnswerTimeout(w.engine.Settings.ShutdownGrace)), local
	for {
		if !local.Before(retry) {
			w.timers.retryArrived()
			retry = local.Add(settleEvery)
		}
		w.startSettlements(w.moment(local), local)
		w.report(local)
		if !w.outstanding() || !local.Before(end) {
			break
		}
		w.await(nil, nil, min(retry.Sub(local), end.Sub(local)))
		local = time.Now()
		w.takeMail(local)
	}
	var err error
	if w.outstanding() {
		err = fmt.Errorf("%w: %s: %d publishes unacknowledged, %d timers not removed", ErrGrace, w.lane.Stream,
			w.flights.underway, w.timers.count)
	}
	return errors.Join(err, w.lastCommit(ctx))
}

// outstanding reports whether drain must wait for answers, for a running commit, or for the settlement of timers.
func (w *worker) outstanding() bool {
	return w.flights.underway > 0 || w.commits.running || len(w.timers.arrived)+len(w.timers.queue) > 0
}

// lastCommit removes every message that has arrived from the lane, and no other message.
func (w *worker) lastCommit(ctx context.Context) error {
	cursor := &w.reading.cursor
	if w.commits.upToDate(cursor) {
		return nil
	}
	select {
	case <-w.lease.Done():
		if !w.lease.Held() {
			return nil // another instance may own the lane already, and repeats the messages without a commit
		}
	default:
	}
	if !w.safeToCommit() {
		return fmt.Errorf("%w: cannot commit %s; delivered messages will be delivered again", ErrGrace, w.lane.Stream)
	}
	a := w.commits.carryOut(ctx, commit{
		upTo: cursor.Arrived(), ahead: cursor.TakeAhead(w.commits.ahead(cursor)), known: w.reading.history(),
		judge: new(lane.Judge), removals: maxRemovals,
	})
	if errors.Is(a.err, lane.ErrHistory) {
		cursor.Reset() // the stream was replaced: remove nothing, and do not pass our position to the next owner
		return nil
	}
	if a.err != nil {
		return fmt.Errorf("commit %s: %w", w.lane.Stream, a.err)
	}
	return nil
}

// position returns the position at which the next owner begins.
func (w *worker) position() lease.Cursor {
	if arrived := w.reading.cursor.Arrived(); arrived > 0 {
		return lease.Cursor{Next: arrived + 1, Created: w.reading.created}
	}
	return lease.Cursor{}
}
