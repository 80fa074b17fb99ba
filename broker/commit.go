package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"delaybroker/levels/lane"
)

const (
	// A lane commits at most this often, and at most for a fiftieth of the time: with 200,000 distinct targets one
	// purge takes 12 ms and holds up the stream's writers.
	commitEvery = 100 * time.Millisecond
	commitShare = 50

	commitTimeout = 5 * time.Second
	deleteWorkers = 32
)

// commitState is a worker's account of its purges.
type commitState struct {
	done    uint64    // committed up to here
	next    time.Time // local; not before
	running bool
}

func (c *commitState) reset() { c.done = 0 }

// commitSoon commits if it is time, and returns how long until it may be.
func (w *worker) commitSoon(local time.Time) time.Duration {
	arrived := w.cursor.Arrived()
	if arrived <= w.commit.done || w.commit.running || !w.safeToCommit() {
		return forever
	}
	if wait := w.commit.next.Sub(local); wait > 0 {
		return wait
	}
	w.commit.running = true
	epoch, created := w.epoch, w.created
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
		defer cancel()
		sample, took, err := w.commitTo(ctx, arrived, created)
		w.mail.put(func(time.Time) {
			w.commit.running = false
			w.commit.next = time.Now().Add(max(commitEvery, commitShare*took))
			if err != nil {
				w.log.Warn("committing; trying again", "sequence", arrived, "err", err)
			} else if epoch == w.epoch {
				w.commit.done = arrived
				w.clock.look(sample)
			}
		})
	})
	return forever
}

// safeToCommit reports whether the lane is ours and its consumer alive, as far as is known without asking.
func (w *worker) safeToCommit() bool {
	return w.lease.Held() && w.epoch != 0 && w.reader.Live() == w.epoch
}

// commitTo commits after a look at the stream: a purge by a sequence of another history destroys what was accepted in
// this one. It says how long the commit itself took.
func (w *worker) commitTo(ctx context.Context, arrived uint64, created time.Time) (lane.Sample, time.Duration, error) {
	sample, err := w.sample(ctx, w.lane.Stream)
	if err != nil {
		return sample, 0, err
	}
	if !sample.Created.Equal(created) || sample.LastSeq < arrived {
		return sample, 0, errHistory
	}
	start := time.Now()
	err = w.committer.Commit(ctx, arrived)
	return sample, time.Since(start), err
}

// drain ends the work on a lane so that a successor repeats nothing: stop reading, await what is underway, commit, await
// that, and remove what arrived out of order above the cursor. Only then may the lease go.
func (w *worker) drain() error {
	w.draining = true
	deadline := time.NewTimer(w.cfg.ShutdownGrace)
	defer deadline.Stop()
	late := false
	for (w.underway > 0 || w.commit.running) && !late {
		select {
		case <-w.mail.bell:
			for _, happened := range w.mail.take() {
				now, _ := w.clock.now(time.Now())
				happened(now)
			}
			w.report()
		case <-deadline.C:
			late = true
		}
	}
	var err error
	if late {
		err = fmt.Errorf("%w: %d publishes of %s outstanding", ErrGrace, w.underway, w.lane.Stream)
	}
	if w.safeToCommit() {
		if e := w.lastCommit(); err == nil {
			err = e
		}
	}
	return err
}

// lastCommit purges up to the cursor and deletes, one by one, what arrived above it.
func (w *worker) lastCommit() error {
	ctx, cancel := context.WithTimeout(context.Background(), max(w.cfg.ShutdownGrace, commitTimeout))
	defer cancel()
	_, _, err := w.commitTo(ctx, w.cursor.Arrived(), w.created)
	if errors.Is(err, errHistory) {
		return nil // nothing in it is ours to remove
	}
	if err != nil {
		return fmt.Errorf("commit %s: %w", w.lane.Stream, err)
	}
	sequences := make(chan uint64)
	var failed error
	var once sync.Once
	var deleting sync.WaitGroup
	for range deleteWorkers {
		deleting.Go(func() {
			for seq := range sequences {
				if err := w.remove(ctx, w.lane.Stream, seq); err != nil {
					once.Do(func() { failed = fmt.Errorf("remove what arrived from %s: %w", w.lane.Stream, err) })
				}
			}
		})
	}
	for seq := range w.cursor.Ahead() {
		sequences <- seq
	}
	close(sequences)
	deleting.Wait()
	return failed
}
