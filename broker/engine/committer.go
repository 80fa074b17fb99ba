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
	// A lane commits at most once in commitEvery, and at most for a fiftieth of the time: with 200,000 distinct targets
	// one purge takes 12 ms and holds up the stream's writers.
	commitEvery    = 100 * time.Millisecond
	commitEveryMax = 5 * time.Second
	commitShare    = 50
	commitRetry    = time.Second // after a commit that failed

	// stuckAfter is the time for which one message may keep the cursor from passing the messages behind it. Then the
	// messages that have arrived behind it are removed one by one, so that a crash does not repeat them. Messages that
	// were moved to wait for their turns at a target's rate are removed with the next commit: a duplicate would take a
	// turn from another message.
	stuckAfter = 5 * time.Second
	takeOut    = 400 // messages removed one by one in one commit

	// confirmedFor is the time for which a look at a stream is valid. If the process was stopped in between, or the answer
	// took longer, the stream may have been replaced, and a purge would remove the wrong messages.
	confirmedFor = time.Second
	removers     = 32 // messages removed at once, of a timer that has arrived or of a lane that stops
	// commitRemovers is the number of messages that a commit of a working lane removes at once. A thousand deletes, 32 at
	// once, kept two cores busy for 50 ms, and the messages for other targets were late by milliseconds.
	commitRemovers = 4
)

// committer removes from a lane the messages that have arrived elsewhere. Its fields belong to the lane's loop;
// carryOut may run on any goroutine.
type committer struct {
	stream string
	kind   laneKind
	api    jsapi.Client
	sample sampler

	done    uint64    // sequence up to which the lane is committed
	next    time.Time // local; no commit before
	moved   time.Time // local; when the cursor last moved, or messages behind it were removed
	running bool
	judge   *lane.Judge // of the commit in progress
	since   time.Time   // local; since when there is something to commit; zero if there is nothing
}

// sampler looks at a stream through its leader.
type sampler func(ctx context.Context, stream string) (lane.Sample, error)

// commit is one commit to carry out.
type commit struct {
	epoch uint64
	upTo  uint64
	ahead []uint64 // arrived above upTo, and removed one by one
	// removers is the number of messages that are removed at once.
	removers int
	known    lane.History
	judge    *lane.Judge
	begun    time.Time // local
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

// reset forgets all commits: the stream was replaced.
func (c *committer) reset() {
	c.done, c.next, c.moved, c.since, c.judge = 0, time.Time{}, time.Time{}, time.Time{}, new(lane.Judge)
}

// due reports whether a commit is due and, if not, the time until one may be.
func (c *committer) due(cursor *lane.Cursor, local time.Time) (now bool, wait time.Duration) {
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
		removers: commitRemovers}
	urgent, moved := c.urgent(&r.cursor) > 0, todo.upTo > c.done
	switch {
	case urgent:
		todo.ahead = r.cursor.TakeUrgent(takeOut)
	case !moved:
		todo.ahead = r.cursor.TakeAhead(min(takeOut, c.ahead(&r.cursor)))
	}
	c.running = true
	if moved || !urgent && len(todo.ahead) < takeOut { // otherwise more messages remain, and the next commit need not wait
		c.moved = local
	}
	return todo
}

// finish handles the result of a commit. It reports whether the commit succeeded for the epoch that is read now.
func (c *committer) finish(a commitAnswer, r *reading, local time.Time) (done bool) {
	c.running = false
	if a.err != nil {
		c.next = local.Add(commitRetry)
		if a.epoch >= r.fresh { // otherwise the cursor is of another history
			r.cursor.PutBack(a.ahead)
		}
		return false
	}
	c.next = local.Add(min(max(commitEvery, commitShare*a.took), commitEveryMax))
	if a.epoch != r.epoch {
		return false
	}
	c.done = max(c.done, a.upTo)
	c.since = a.begun // messages that arrived during the commit may have waited since then
	return true
}

// waiting returns the time since which there is something to commit, zero if there is nothing.
func (c *committer) waiting(cursor *lane.Cursor, local time.Time) time.Time {
	if c.nothing(cursor) {
		c.since = time.Time{}
	} else if c.since.IsZero() {
		c.since = local
	}
	return c.since
}

// nothing reports whether there is nothing to commit.
func (c *committer) nothing(cursor *lane.Cursor) bool {
	return cursor.Arrived() <= c.done && c.ahead(cursor) == 0
}

// ahead returns the number of messages to be removed one by one: they arrived behind a message that stays.
func (c *committer) ahead(cursor *lane.Cursor) int {
	if c.kind.holdsTimers() {
		return 0 // entries stay
	}
	return cursor.Ahead()
}

// urgent returns the number of these messages that are to be removed soon.
func (c *committer) urgent(cursor *lane.Cursor) int {
	if c.kind.holdsTimers() {
		return 0
	}
	return cursor.Urgent()
}

// carryOut commits up to a sequence and removes some messages above it, after a look at the stream: in another history
// both would destroy accepted messages.
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

// confirm returns lane.ErrHistory if the stream is not the one that was read, and lane.ErrUnsure if this cannot be
// determined now.
func (c *committer) confirm(ctx context.Context, look lane.Sample, todo commit) error {
	message := func(ctx context.Context, sequence uint64) (jsapi.Message, error) {
		return c.api.Message(ctx, c.stream, sequence)
	}
	verdict, err := todo.judge.Verdict(ctx, todo.known, look, message)
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

// passed returns the time since then, by the local clock that shows the longer time: the monotonic clock stops while a
// machine is suspended, and the wall clock may be set.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// removeAll deletes the messages ahead one by one, several concurrently. A message that is already gone is no error.
func (c *committer) removeAll(ctx context.Context, todo commit) error {
	queue := make(chan uint64)
	var failed error
	var once sync.Once
	var removing sync.WaitGroup
	for range min(todo.removers, len(todo.ahead)) {
		removing.Go(func() {
			for seq := range queue {
				if err := c.api.Delete(ctx, c.stream, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
					once.Do(func() { failed = fmt.Errorf("remove what arrived: %w", err) })
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
