package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
)

const (
	// A lane commits at most this often, and at most for a fiftieth of the time: with 200,000 distinct targets one
	// purge takes 12 ms and holds up the stream's writers.
	commitEvery    = 100 * time.Millisecond
	commitEveryMax = 5 * time.Second
	commitShare    = 50

	// stuckAfter is how long one message may keep the cursor from passing those behind it. Then what has arrived behind
	// it is taken out by itself, so that a crash does not repeat it.
	stuckAfter = 5 * time.Second
	takeOut    = 1000 // messages at a time

	commitTimeout = 5 * time.Second
	// confirmedFor is how long a stream is taken for the one that was looked at. A process that was stopped in between, or
	// an answer that took longer, knows no more what it would purge.
	confirmedFor = time.Second
	removers     = 32 // messages removed at once
)

// commitState is a worker's account of its purges.
type commitState struct {
	done    uint64    // committed up to here
	next    time.Time // local; not before
	moved   time.Time // local; when the cursor last moved, or what is behind it was taken out
	running bool
	judge   *lane.Judge // of the commit underway
	since   time.Time   // local; since when there is something to commit; zero when there is nothing
}

// commitSoon commits if there is something to commit and it is time, and returns how long until it may be.
func (w *worker) commitSoon(local time.Time) time.Duration {
	c := &w.commit
	arrived := w.cursor.Arrived()
	due := c.next
	switch {
	case c.running || !w.safeToCommit():
		return forever
	case arrived > c.done:
	case w.cursor.Ahead() > 0:
		if stuck := c.moved.Add(stuckAfter); stuck.After(due) {
			due = stuck
		}
	default:
		c.moved = local
		return forever
	}
	if wait := due.Sub(local); wait > 0 {
		return wait
	}
	var ahead []uint64
	if arrived <= c.done {
		ahead = w.cursor.TakeAhead(takeOut)
	}
	c.running = true
	if len(ahead) < takeOut { // otherwise there is more, and no reason to wait
		c.moved = local
	}
	epoch, known, judge := w.epoch, w.history(), c.judge
	w.early.ask(w.clock.leader, local)
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
		defer cancel()
		sample, took, err := w.commitTo(ctx, arrived, ahead, known, judge)
		w.mail.put(func(now time.Time) {
			c.running = false
			if err != nil && epoch >= w.fresh { // otherwise the cursor is of another history
				w.cursor.PutBack(ahead)
			}
			if errors.Is(err, errHistory) {
				c.next = time.Now().Add(time.Second)
				w.reader.Invalidate(epoch) // it may be waiting for us, and hear nothing
				return
			}
			if err != nil {
				c.next = time.Now().Add(time.Second)
				w.complain(now, slog.LevelWarn, "committing; trying again", "sequence", arrived, "err", err)
				return
			}
			c.next = time.Now().Add(min(max(commitEvery, commitShare*took), commitEveryMax))
			if epoch == w.epoch {
				c.done = max(c.done, arrived)
				c.since = local // what has arrived meanwhile waits since then
				w.looked(sample)
				w.judge(sample)
			}
		})
	})
	return forever
}

// safeToCommit reports whether the lane is ours and its consumer alive, as far as is known without asking.
func (w *worker) safeToCommit() bool {
	return w.lease.Held() && w.epoch != 0 && w.reader.Live() == w.epoch
}

// history is what is known of the stream that is read.
func (w *worker) history() lane.History {
	return lane.History{Created: w.created, Read: w.last.Sequence, At: w.last.At}
}

// commitTo commits up to a sequence and removes some messages above it, after a look at the stream: in another history
// both would destroy what was accepted. It says how long the questions and the commit took.
func (w *worker) commitTo(
	ctx context.Context, arrived uint64, ahead []uint64, known lane.History, judge *lane.Judge,
) (lane.Sample, time.Duration, error) {
	sample, err := w.sample(ctx, w.lane.Stream)
	if err != nil {
		return sample, 0, err
	}
	start := time.Now()
	if err := w.confirm(ctx, sample, known, judge); err != nil {
		return sample, 0, err
	}
	if passed(sample.Received, time.Now()) > confirmedFor {
		return sample, 0, errUnsure
	}
	if err := w.committer.Commit(ctx, arrived); err != nil {
		return sample, 0, err
	}
	took := time.Since(start)
	return sample, took, w.removeAll(ctx, ahead)
}

// passed is how long ago something was, by whichever local clock says more: the monotonic one stands still while a machine is
// suspended, the other may be set.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// confirm returns errHistory when the stream is not the one that was read, and errUnsure when that cannot be told now.
func (w *worker) confirm(ctx context.Context, look lane.Sample, known lane.History, judge *lane.Judge) error {
	verdict, err := judge.Verdict(ctx, known, look, func(ctx context.Context, sequence uint64) (jsapi.Message, error) {
		return w.api.Message(ctx, w.lane.Stream, sequence)
	})
	switch {
	case err != nil:
		return err
	case verdict == lane.Other:
		return errHistory
	case verdict == lane.Unsure:
		return errUnsure
	}
	return nil
}

// removeAll deletes messages one by one, several at once.
func (w *worker) removeAll(ctx context.Context, sequences []uint64) error {
	queue := make(chan uint64)
	var failed error
	var once sync.Once
	var removing sync.WaitGroup
	for range min(removers, len(sequences)) {
		removing.Go(func() {
			for seq := range queue {
				if err := w.remove(ctx, w.lane.Stream, seq); err != nil {
					once.Do(func() { failed = fmt.Errorf("remove what arrived: %w", err) })
				}
			}
		})
	}
	for _, seq := range sequences {
		queue <- seq
	}
	close(queue)
	removing.Wait()
	return failed
}

// drain ends the work on a lane so that a successor repeats nothing: stop reading, await what is underway, commit, await
// that, and remove what arrived out of order above the cursor. Only then may the lease go. All that together takes no
// longer than the grace period.
func (w *worker) drain() error {
	w.stopped.Store(true)
	w.deliver.Recall(w)
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.ShutdownGrace)
	defer cancel()
	answers := time.NewTimer(AnswersWithin(w.cfg.ShutdownGrace))
	defer answers.Stop()
	late := false
	for (w.underway > 0 || w.commit.running) && !late {
		select {
		case <-w.lease.Beats():
		case <-w.mail.bell:
			for _, happened := range w.mail.take() {
				now, _ := w.clock.now(time.Now())
				happened(now)
			}
			w.report(time.Now())
		case <-answers.C:
			late = true
		}
	}
	var err error
	if late {
		err = fmt.Errorf("%w: %d publishes of %s outstanding", ErrGrace, w.underway, w.lane.Stream)
	}
	return errors.Join(err, w.lastCommit(ctx))
}

// lastCommit leaves in the lane what has not arrived, and nothing else.
func (w *worker) lastCommit(ctx context.Context) error {
	arrived := w.cursor.Arrived()
	if arrived <= w.commit.done && w.cursor.Ahead() == 0 {
		return nil
	}
	select {
	case <-w.lease.Done():
		if !w.lease.Held() {
			return nil // another has it already, and repeats what was not committed
		}
	default:
	}
	if !w.safeToCommit() {
		return fmt.Errorf("%w: %s cannot be committed, what arrived will come again", ErrGrace, w.lane.Stream)
	}
	_, _, err := w.commitTo(ctx, arrived, w.cursor.TakeAhead(w.cursor.Ahead()), w.history(), new(lane.Judge))
	if errors.Is(err, errHistory) {
		w.cursor.Reset() // nothing in it is ours to remove, and a successor must not start where we stopped
		return nil
	}
	if err != nil {
		return fmt.Errorf("commit %s: %w", w.lane.Stream, err)
	}
	return nil
}
