package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
)

const (
	// After a commit that took a time t, a lane waits commitShare times t, within the bounds commitEvery and
	// commitEveryMax. With 200,000 distinct targets, one purge takes 12 ms, and delays the stream's writers.
	commitEvery    = 100 * time.Millisecond
	commitEveryMax = 5 * time.Second
	commitShare    = 50
	commitRetry    = time.Second // the wait after a failed commit

	// stuckAfter is the time after which a commit no longer waits for a message that stops the cursor. The commit
	// then removes one by one those messages above the cursor that have arrived, so that a crash does not repeat
	// them. If the broker moved such a message to wait for its reserved send time, the next commit removes the
	// message without a wait: a duplicate of it would use up the send time of another message.
	stuckAfter = 5 * time.Second
	maxRemoved = 400 // maximum number of messages that one commit removes one by one

	// confirmedFor is the maximum age of the leader's answer at a purge. If the answer is older, for example because the
	// process was suspended, the stream may have been replaced, and the purge would remove the wrong messages.
	confirmedFor = time.Second
	// maxRemovals is the maximum number of concurrent deletes of a lane that stops, or of settled timers.
	maxRemovals = 32
	// maxCommitRemovals is the maximum number of concurrent deletes of a commit while the lane works. A thousand deletes,
	// 32 at a time, kept two cores busy for 50 ms, and the messages for other targets were late by milliseconds.
	maxCommitRemovals = 4
)

// committer removes the messages that have arrived from a lane. Only the lane's loop uses its fields. carryOut, which
// uses only constant fields, may run on any goroutine.
type committer struct {
	stream string
	kind   laneKind
	api    jsapi.Client
	sample sampler

	done    uint64    // sequence up to which the lane is committed
	next    time.Time // local; the earliest time of the next commit
	moved   time.Time // local; when the cursor last moved, or messages above it were removed
	running bool      // a commit is in progress
	judge   *lane.Judge
	since   time.Time // local; when messages began to wait for a commit; zero while none waits
}

// sampler requests the state of a stream from its leader.
type sampler func(ctx context.Context, stream string) (lane.Sample, error)

// commit is one commit to carry out.
type commit struct {
	epoch uint64
	upTo  uint64
	ahead []uint64 // messages above upTo that have arrived; they are removed one by one
	known lane.History
	judge *lane.Judge
	begun time.Time // local

	removals int // maximum number of concurrent deletes
}

// commitAnswer is the result of a commit.
type commitAnswer struct {
	commit
	sample lane.Sample
	took   time.Duration
	err    error
}

func newCommitter(stream string, kind laneKind, api jsapi.Client, sample sampler) *committer {
	return &committer{stream: stream, kind: kind, api: api, sample: sample, judge: new(lane.Judge)}
}

// reset forgets all commits. It is called after the stream was replaced.
func (c *committer) reset() {
	c.done, c.next, c.moved, c.since, c.judge = 0, time.Time{}, time.Time{}, time.Time{}, new(lane.Judge)
}

// due reports whether a commit is due, and returns the time until one may be due.
func (c *committer) due(cursor *lane.Cursor, local time.Time) (isDue bool, wait time.Duration) {
	due := c.next
	switch {
	case c.running:
		return false, forever
	case cursor.Arrived() > c.done:
	case c.urgent(cursor) > 0:
	case c.ahead(cursor) > 0:
		if stuck := c.moved.Add(stuckAfter); stuck.After(due) {
			due = stuck
		}
	default:
		c.moved = local
		return false, forever
	}
	wait = due.Sub(local)
	return wait <= 0, max(wait, 0)
}

// begin returns the next commit to carry out.
func (c *committer) begin(r *reading, local time.Time) commit {
	todo := commit{epoch: r.epoch, upTo: r.cursor.Arrived(), known: r.history(), judge: c.judge, begun: local,
		removals: maxCommitRemovals}
	urgent, moved := c.urgent(&r.cursor) > 0, todo.upTo > c.done
	switch {
	case urgent:
		todo.ahead = r.cursor.TakeUrgent(maxRemoved)
	case !moved:
		todo.ahead = r.cursor.TakeAhead(min(maxRemoved, c.ahead(&r.cursor)))
	}
	c.running = true
	if moved || !urgent && len(todo.ahead) < maxRemoved { // if messages remain, the next commit must not wait
		c.moved = local
	}
	return todo
}

// finish handles the result of a commit. It reports whether the commit succeeded, and belongs to the current epoch.
func (c *committer) finish(a commitAnswer, r *reading, local time.Time) (done bool) {
	c.running = false
	if a.err != nil {
		c.next = local.Add(commitRetry)
		if a.epoch >= r.fresh { // the sequences of an older epoch belong to an earlier history of the stream
			r.cursor.PutBack(a.ahead)
		}
		return false
	}
	c.next = local.Add(min(max(commitEvery, commitShare*a.took), commitEveryMax))
	if a.epoch != r.epoch {
		return false
	}
	c.done = max(c.done, a.upTo)
	c.since = a.begun // messages that arrived during the commit may have waited since it began
	return true
}

// waiting returns the time since which messages wait for a commit, or zero if no message waits.
func (c *committer) waiting(cursor *lane.Cursor, local time.Time) time.Time {
	if c.upToDate(cursor) {
		c.since = time.Time{}
	} else if c.since.IsZero() {
		c.since = local
	}
	return c.since
}

// upToDate reports whether no message waits for a commit.
func (c *committer) upToDate(cursor *lane.Cursor) bool {
	return cursor.Arrived() <= c.done && c.ahead(cursor) == 0
}

// ahead returns the number of messages that have arrived and lie above the cursor. A commit removes them one by one.
func (c *committer) ahead(cursor *lane.Cursor) int {
	if c.kind.holdsTimers() {
		return 0 // entries stay after they have been read
	}
	return cursor.Ahead()
}

// urgent returns the number of messages above the cursor that have arrived, and that the next commit must remove.
func (c *committer) urgent(cursor *lane.Cursor) int {
	if c.kind.holdsTimers() {
		return 0
	}
	return cursor.Urgent()
}

// carryOut commits up to a sequence, and removes some messages above it. First it checks the history of the stream. If
// the stream was replaced since the lane was read, both steps would remove accepted messages.
func (c *committer) carryOut(ctx context.Context, todo commit) commitAnswer {
	a := commitAnswer{commit: todo}
	if a.sample, a.err = c.sample(ctx, c.stream); a.err != nil {
		return a
	}
	start := time.Now()
	if a.err = c.confirm(ctx, a.sample, todo); a.err != nil {
		return a
	}
	if passed(a.sample.Received, time.Now()) > confirmedFor {
		a.err = lane.ErrUnsure
		return a
	}
	if a.err = c.kind.commit(ctx, c, todo); a.err != nil {
		return a
	}
	a.took = time.Since(start)
	a.err = c.removeAll(ctx, todo)
	return a
}

// confirm returns lane.ErrHistory if the stream has another history than the one that the lane's reader has read. It
// returns lane.ErrUnsure if the answer of the leader does not settle this.
func (c *committer) confirm(ctx context.Context, sample lane.Sample, todo commit) error {
	message := func(ctx context.Context, sequence uint64) (jsapi.Message, error) {
		return c.api.Message(ctx, c.stream, sequence)
	}
	verdict, err := todo.judge.Verdict(ctx, todo.known, sample, message)
	switch {
	case err != nil:
		return err
	case verdict == lane.Other:
		return lane.ErrHistory
	case verdict == lane.Unsure:
		return lane.ErrUnsure
	}
	return nil
}

// passed returns the time from since to now by the monotonic clock or by the wall clock, whichever is longer: the
// monotonic clock stops while a machine is suspended, and an operator may set the wall clock back.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// removeAll deletes the messages of todo.ahead, several concurrently. A message that no longer exists causes no error.
func (c *committer) removeAll(ctx context.Context, todo commit) error {
	queue := make(chan uint64)
	var failed error
	var once sync.Once
	var removing sync.WaitGroup
	for range min(todo.removals, len(todo.ahead)) {
		removing.Go(func() {
			for seq := range queue {
				if err := c.api.Delete(ctx, c.stream, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
					once.Do(func() { failed = fmt.Errorf("remove a message that has arrived: %w", err) })
				}
			}
		})
	}
	for _, seq := range todo.ahead {
		queue <- seq
	}
	close(queue)
	removing.Wait()
	return failed
}
