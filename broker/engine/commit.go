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

// commitIfDue begins a commit if one is due and safe. It returns the time after which it must be called again, if no
// event comes before.
func (w *worker) commitIfDue(local time.Time) time.Duration {
	if !w.safeToCommit() {
		return forever
	}
	due, wait := w.commits.due(&w.reading.cursor, local)
	if !due {
		return wait
	}
	todo := w.commits.begin(w.reading, local)
	w.earlyCheck.Begin(w.clock.Leader(), local)
	w.request(jsapi.Timeout, func(ctx context.Context) event { return w.commits.carryOut(ctx, todo) })
	return forever
}

func (a commitAnswer) handle(w *worker, m moment) {
	ok := w.commits.finish(a, w.reading, m.local)
	switch {
	case errors.Is(a.err, lane.ErrOtherHistory):
		w.reading.Invalidate(a.epoch) // the reader may not have noticed that the stream was replaced
	case a.err != nil:
		w.limitedLog.Log(slog.LevelWarn, "commit failed, will retry", "sequence", a.upTo, "err", a.err)
	case ok:
		w.recordSample(a.sample)
		w.countEarly(a.sample)
	}
}

// safeToCommit reports whether the lease is held and the consumer is believed alive. It sends no request.
func (w *worker) safeToCommit() bool { return w.lease.Held() && w.reading.live() }

// drain ends the work on a lane with a final commit, so that the next instance repeats no delivery. The reader must
// have stopped. Before the final commit, drain waits for outstanding answers, and until the entries of settled timers
// are removed. The lease may be released only after drain has returned. Drain takes at most the grace period.
func (w *worker) drain() error {
	w.stopped.Store(true)
	w.engine.Deliver.Recall(w)
	ctx, cancel := context.WithTimeout(context.Background(), w.engine.Settings.ShutdownGrace)
	defer cancel()
	local := time.Now()
	end, retryAt, handOverAt := local.Add(config.AnswerTimeout(w.engine.Settings.ShutdownGrace)), local,
		local.Add(handOverAfter)
	w.answersUntil = end
	for {
		if !local.Before(retryAt) {
			w.timers.retryRequired()
			retryAt = local.Add(settleInterval)
		}
		if !local.Before(handOverAt) {
			w.handOverOpen(w.moment(local), end)
			handOverAt = local.Add(handOverAfter) // for a stand-by that starts now, and a copy that was refused
		}
		w.startSettlements(w.moment(local))
		w.report(local)
		if !w.outstanding() || !local.Before(end) {
			break
		}
		w.await(nil, nil, min(retryAt.Sub(local), end.Sub(local), handOverAt.Sub(local)))
		local = time.Now()
		w.takeMail(local)
	}
	var err error
	if w.outstanding() {
		err = fmt.Errorf("%w: %s: %d publishes unacknowledged, %d timers not removed", ErrGrace, w.lane.Stream,
			w.flights.unanswered, w.timers.count)
	}
	return errors.Join(err, w.finalCommit(ctx))
}

// outstanding reports whether drain must wait for answers, for a running commit, or for the settlement of timers.
func (w *worker) outstanding() bool {
	return w.flights.unanswered > 0 || w.commits.running || len(w.timers.required)+w.timers.queue.waiting > 0
}

// finalCommit commits every message that has arrived, including the messages above the cursor. It commits nothing if
// another instance may be active already.
func (w *worker) finalCommit(ctx context.Context) error {
	cursor := &w.reading.cursor
	if w.commits.upToDate(cursor) {
		return nil
	}
	select {
	case <-w.lease.Done():
		if !w.lease.Held() {
			return nil // the next instance may deliver the uncommitted messages again
		}
	default:
	}
	if !w.safeToCommit() {
		return fmt.Errorf("%w: cannot commit %s, because its lease or its consumer is in doubt; delivered messages may be "+
			"delivered again", ErrGrace, w.lane.Stream)
	}
	todo := commit{
		upTo: cursor.ArrivedThrough(), history: w.reading.history(), judge: new(lane.Judge), concurrency: maxRemovals,
	}
	if w.commits.outOfOrder(cursor) > 0 {
		todo.purges = cursor.TakeSubjects(maxFinalPurges, maxSpan)
		todo.outOfOrder = cursor.TakeOutOfOrder(cursor.OutOfOrder())
	}
	a := w.commits.carryOut(ctx, todo)
	if errors.Is(a.err, lane.ErrOtherHistory) {
		cursor.Reset() // the stream was replaced: remove nothing, and do not pass our position to the next instance
		return nil
	}
	if a.err != nil {
		return fmt.Errorf("commit %s: %w", w.lane.Stream, a.err)
	}
	return nil
}

// position returns the cursor at which the next instance begins, or zero if no message has arrived.
func (w *worker) position() lease.Cursor {
	if arrived := w.reading.cursor.ArrivedThrough(); arrived > 0 {
		return lease.Cursor{Next: arrived + 1, Created: w.reading.created}
	}
	return lease.Cursor{}
}
