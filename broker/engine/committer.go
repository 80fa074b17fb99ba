package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
)

const (
	// After a commit, a lane waits for commitShare times the duration of the purge and of the check before the purge, but
	// at least for minCommitInterval and at most for maxCommitInterval. With 200,000 distinct targets, one purge takes 12
	// ms, and delays the stream's writers.
	minCommitInterval = 100 * time.Millisecond
	maxCommitInterval = 5 * time.Second
	commitShare       = 50
	commitRetry       = time.Second // the wait after a failed commit

	// If a message stops the cursor, commits also remove the messages above the cursor that have arrived, so that a crash
	// does not repeat them. After purgeAfter, a commit purges the messages of single subjects: such a purge costs as much
	// as one delete. After stuckAfter, a commit deletes the others one by one. A message that the broker moved to another
	// lane to wait for its reserved send time is deleted by the next commit, without this wait: a duplicate would use up
	// the send time of another message.
	purgeAfter = time.Second
	stuckAfter = 5 * time.Second
	maxDeletes = 400 // maximum number of messages that one commit deletes one by one
	// One commit purges at most maxPurges subjects, and the final commit maxFinalPurges. One purge removes at most
	// maxPurged messages, because it delays the stream's writers.
	maxPurges, maxFinalPurges, maxPurged = 4, 256, 10_000
	// While maxOutOfOrder messages above the cursor have arrived, the lane reads no further message, unless commits fail.
	// So a crash repeats at most that many messages behind a message that stops the cursor.
	maxOutOfOrder = 1 << 16
	// From manyOutOfOrder such messages on, a commit purges subjects even while the cursor moves.
	manyOutOfOrder = maxOutOfOrder / 16

	// A purge needs a sample that confirms the stream's history and is at most confirmedFor old. If the sample is older,
	// for example because the process was suspended, the stream may have been replaced after the sample, and the purge
	// would remove messages of the new stream.
	confirmedFor = time.Second
	// maxConfirmations is the maximum number of samples that one commit takes. The final commit of a lane has no other
	// try.
	maxConfirmations = 3
	// maxRemovals is the maximum number of concurrent deletes of the final commit before a lane is released, and of
	// concurrent requests that remove the entries of settled timers.
	maxRemovals = 32
	// maxCommitRemovals is the maximum number of concurrent deletes of any other commit. A thousand deletes, 32 at a time,
	// kept two cores busy for 50 ms, and the messages for other targets were late by milliseconds.
	maxCommitRemovals = 4
)

// committer removes from a lane the messages that have arrived. Only the lane's loop calls its methods, except carryOut
// and what carryOut calls: these use only constant fields, and may run on any goroutine.
type committer struct {
	stream string
	kind   laneKind
	api    jsapi.Client
	sample sampler

	committed    uint64    // the sequence up to which the lane is committed
	earliest     time.Time // local; the earliest time of the next commit
	movedAt      time.Time // local; since when a message stops the cursor, or no other message waits for a commit
	purgedAt     time.Time // local; when a commit has last purged subjects
	deletedAt    time.Time // local; when a commit has last deleted all messages above the cursor one by one
	running      bool      // a commit is in progress
	failed       bool      // the last commit failed
	judge        *lane.Judge
	waitingSince time.Time // local; when messages began to wait for a commit; zero while none waits
}

// sampler requests the state of a stream from its leader.
type sampler func(ctx context.Context, stream string) (lane.Sample, error)

// commit has the arguments of carryOut.
type commit struct {
	epoch      uint64       // the epoch of the reading (the life of one consumer) when the commit began
	upTo       uint64       // the sequence up to which all messages have arrived
	outOfOrder []uint64     // sequences above upTo whose messages have arrived; the messages are deleted one by one
	purges     []lane.Purge // of further such messages
	history    lane.History
	judge      *lane.Judge
	startedAt  time.Time // local

	concurrency int // maximum number of concurrent deletes
}

// commitAnswer is the event that a commit has ended.
type commitAnswer struct {
	commit
	sample lane.Sample   // the stream's state before the purge
	took   time.Duration // the duration of the purge and of the check before it
	err    error
}

func newCommitter(stream string, kind laneKind, api jsapi.Client, sample sampler) *committer {
	return &committer{stream: stream, kind: kind, api: api, sample: sample, judge: new(lane.Judge)}
}

// reset is called after the stream was replaced. In the new stream, nothing is committed yet. A commit in progress
// continues.
func (c *committer) reset() {
	c.committed, c.judge = 0, new(lane.Judge)
	c.earliest, c.movedAt, c.purgedAt, c.deletedAt, c.waitingSince = time.Time{}, time.Time{}, time.Time{}, time.Time{},
		time.Time{}
}

// due reports whether a commit is due, and returns the time until it is. The time is forever while a commit is in
// progress, and while no message waits for a commit.
func (c *committer) due(cursor *lane.Cursor, local time.Time) (isDue bool, wait time.Duration) {
	due := c.earliest
	switch {
	case c.running:
		return false, forever
	case cursor.ArrivedThrough() > c.committed:
	case c.urgent(cursor) > 0:
	case c.outOfOrder(cursor) >= manyOutOfOrder && cursor.HasSubject():
	case c.outOfOrder(cursor) > 0:
		stuck := c.deletesAt()
		if cursor.HasSubject() {
			stuck = c.purgesAt(local)
		}
		if stuck.After(due) {
			due = stuck
		}
	default:
		c.movedAt = local
		return false, forever
	}
	wait = due.Sub(local)
	return wait <= 0, max(wait, 0)
}

// purgesAt returns the time from which on a commit purges subjects. After a purge, the next one does not wait.
func (c *committer) purgesAt(local time.Time) time.Time {
	if local.Sub(c.purgedAt) < purgeAfter {
		return c.purgedAt
	}
	return c.movedAt.Add(purgeAfter)
}

// deletesAt returns the time from which on a commit deletes messages above the cursor one by one.
func (c *committer) deletesAt() time.Time {
	if c.deletedAt.After(c.movedAt) {
		return c.deletedAt.Add(stuckAfter)
	}
	return c.movedAt.Add(stuckAfter)
}

// begin begins a commit. The caller must carry it out, and then call finish.
func (c *committer) begin(r *reading, local time.Time) commit {
	todo := commit{epoch: r.epoch, upTo: r.cursor.ArrivedThrough(), history: r.history(), judge: c.judge, startedAt: local,
		concurrency: maxCommitRemovals}
	cursor := &r.cursor
	moved, count := todo.upTo > c.committed, c.outOfOrder(cursor)
	if c.urgent(cursor) > 0 {
		todo.outOfOrder = cursor.TakeUrgent(maxDeletes)
	}
	if count > 0 && (!moved && !local.Before(c.purgesAt(local)) || count >= manyOutOfOrder) {
		todo.purges = cursor.TakeSubjects(maxPurges, maxPurged)
	}
	if len(todo.purges) > 0 {
		c.purgedAt = local
	}
	isStuck := !moved && !local.Before(c.deletesAt())
	if room := maxDeletes - len(todo.outOfOrder); count > 0 && (isStuck || count >= maxOutOfOrder/2) {
		todo.outOfOrder = append(todo.outOfOrder, cursor.TakeOutOfOrder(room)...)
	}
	c.running = true
	if moved {
		c.movedAt = local
	}
	if isStuck && len(todo.outOfOrder) < maxDeletes { // after a full batch, the next batch does not wait for stuckAfter
		c.deletedAt = local
	}
	return todo
}

// finish records the result of a commit. It reports whether the commit succeeded, and began in the present epoch.
func (c *committer) finish(a commitAnswer, r *reading, local time.Time) (ok bool) {
	c.running, c.failed = false, a.err != nil
	if a.err != nil {
		c.earliest = local.Add(commitRetry)
		if a.epoch >= r.historyEpoch { // before historyEpoch, the sequences belong to an earlier history
			r.cursor.PutBack(a.outOfOrder)
			for _, p := range a.purges {
				r.cursor.PutBack(p.Sequences)
			}
		}
		return false
	}
	c.earliest = local.Add(min(max(minCommitInterval, commitShare*a.took), maxCommitInterval))
	if a.epoch != r.epoch {
		return false
	}
	c.committed = max(c.committed, a.upTo)
	c.waitingSince = a.startedAt // messages that arrived during the commit may have waited since it began
	return true
}

// uncommittedSince returns the time since which messages wait for a commit, or zero if no message waits.
func (c *committer) uncommittedSince(cursor *lane.Cursor, local time.Time) time.Time {
	if c.upToDate(cursor) {
		c.waitingSince = time.Time{}
	} else if c.waitingSince.IsZero() {
		c.waitingSince = local
	}
	return c.waitingSince
}

// crowded reports whether so many messages above the cursor have arrived that the lane must read no further message.
func (c *committer) crowded(cursor *lane.Cursor) bool {
	return !c.failed && c.outOfOrder(cursor) >= maxOutOfOrder
}

// upToDate reports whether the lane is committed: no message waits for a commit.
func (c *committer) upToDate(cursor *lane.Cursor) bool {
	return cursor.ArrivedThrough() <= c.committed && c.outOfOrder(cursor) == 0
}

// outOfOrder returns the number of messages above the cursor that have arrived. A commit deletes them one by one.
func (c *committer) outOfOrder(cursor *lane.Cursor) int {
	if c.kind.holdsTimers() {
		return 0 // the entries of timers are not removed by commits
	}
	return cursor.OutOfOrder()
}

// urgent returns the number of messages above the cursor that have arrived, and that the next commit must delete.
func (c *committer) urgent(cursor *lane.Cursor) int {
	if c.kind.holdsTimers() {
		return 0
	}
	return cursor.Urgent()
}

// carryOut commits up to todo.upTo, and deletes the messages todo.outOfOrder. Before that, it checks the history of the
// stream: in a stream that was replaced since the lane was read, it would remove messages that have not arrived.
func (c *committer) carryOut(ctx context.Context, todo commit) commitAnswer {
	a := commitAnswer{commit: todo}
	if a.sample, a.err = c.confirm(ctx, todo); a.err != nil {
		return a
	}
	if a.err = c.kind.commit(ctx, c, todo); a.err != nil {
		return a
	}
	a.took = time.Since(a.sample.Received)
	for _, p := range todo.purges {
		if a.err = c.api.PurgeBelow(ctx, c.stream, p.Subject, p.Below); a.err != nil {
			a.err = fmt.Errorf("remove messages that have arrived: %w", a.err)
			return a
		}
	}
	a.err = c.removeAll(ctx, todo)
	return a
}

// confirm returns a sample that confirms the history of the stream and is at most confirmedFor old. It tries again if
// the server, or a busy machine, is too slow for that.
func (c *committer) confirm(ctx context.Context, todo commit) (lane.Sample, error) {
	message := func(ctx context.Context, sequence uint64) (jsapi.Message, error) {
		return c.api.Message(ctx, c.stream, sequence)
	}
	for range maxConfirmations {
		sample, err := c.sample(ctx, c.stream)
		if err != nil {
			return sample, err
		}
		if err := todo.judge.Compare(ctx, todo.history, sample, message); err != nil {
			return sample, err
		}
		if elapsed(sample.Received, time.Now()) <= confirmedFor {
			return sample, nil
		}
	}
	return lane.Sample{}, errSlowConfirmation
}

// elapsed returns the time between two local times, by the monotonic clock or by the wall clock, whichever is longer.
// The monotonic clock stops while a machine is suspended, and an operator may set the wall clock back.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// removeAll deletes the messages todo.outOfOrder, at most todo.concurrency at a time. A message that no longer exists
// causes no error.
func (c *committer) removeAll(ctx context.Context, todo commit) error {
	var removing errgroup.Group
	removing.SetLimit(todo.concurrency)
	for _, seq := range todo.outOfOrder {
		removing.Go(func() error {
			if err := c.api.Delete(ctx, c.stream, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return fmt.Errorf("remove a message that has arrived: %w", err)
			}
			return nil
		})
	}
	return removing.Wait()
}
