package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/test/natstest"
)

// TestCommitsAreDue: commits run one at a time. The wait between two commits is fifty times the duration of the first,
// but at least 100 ms and at most 5 s.
func TestCommitsAreDue(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	due := func(at time.Time, want time.Duration) {
		t.Helper()
		if now, wait := c.due(&r.cursor, at); now != (want == 0) || wait != want {
			t.Errorf("due %v in %s, want in %s", now, wait, want)
		}
	}
	due(local, forever)
	arriveAt(r, 1)
	due(local, 0)
	todo := c.begin(r, local)
	if todo.upTo != 1 || todo.epoch != 1 || len(todo.outOfOrder) != 0 {
		t.Errorf("commit %+v, want up to 1", todo)
	}
	due(local, forever) // while a commit is in progress
	if !c.finish(commitAnswer{commit: todo, took: time.Millisecond}, r, local) {
		t.Error("the commit does not count as carried out")
	}
	due(local, forever)
	arriveAt(r, 2)
	due(local, minCommitInterval)
	due(local.Add(minCommitInterval), 0)
	todo = c.begin(r, local)
	c.finish(commitAnswer{commit: todo, took: 10 * time.Millisecond}, r, local)
	arriveAt(r, 3)
	due(local, 500*time.Millisecond)
	todo = c.begin(r, local)
	c.finish(commitAnswer{commit: todo, took: time.Second}, r, local)
	arriveAt(r, 4)
	due(local, maxCommitInterval)
	todo = c.begin(r, local)
	if c.finish(commitAnswer{commit: todo, err: errors.New("x")}, r, local) {
		t.Error("a failed commit counts as carried out")
	}
	due(local, commitRetry)
}

func arriveAt(r *reading, sequence uint64) {
	m, _ := r.record(item(r.epoch, sequence, after(0), 0))
	r.cursor.Done(m)
}

// TestStuckCursor: if a message stops the cursor, the messages behind it that have arrived are deleted one by one after
// five seconds. If a delete fails, it is repeated later.
func TestStuckCursor(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	c.due(&r.cursor, local)
	r.record(item(1, 1, after(0), 0)) // stops the cursor
	arriveAt(r, 2)
	arriveAt(r, 3)
	if _, wait := c.due(&r.cursor, local); wait != stuckAfter {
		t.Fatalf("due in %s, want %s", wait, stuckAfter)
	}
	later := local.Add(stuckAfter)
	if now, _ := c.due(&r.cursor, later); !now {
		t.Fatalf("not due after %s", stuckAfter)
	}
	todo := c.begin(r, later)
	if want := []uint64{2, 3}; todo.upTo != 0 || !slices.Equal(todo.outOfOrder, want) {
		t.Fatalf("commit up to %d, deletes of %v; want 0 and %v", todo.upTo, todo.outOfOrder, want)
	}
	c.finish(commitAnswer{commit: todo, err: errors.New("x")}, r, later)
	if got := r.cursor.OutOfOrder(); got != 2 {
		t.Errorf("%d messages are out of order after the commit failed, want 2", got)
	}
	if since := c.uncommittedSince(&r.cursor, later); !since.Equal(later) {
		t.Errorf("a message waits since %s, want %s", since, later)
	}
}

// TestSubjectsBehindStuckCursor: if a message stops the cursor, the messages of a subject behind it that have arrived
// are purged after a second, up to the first one that has not arrived. The others are deleted after five seconds. If
// the commit fails, everything is repeated later.
func TestSubjectsBehindStuckCursor(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	c.due(&r.cursor, local)
	record := func(sequence uint64, subject string) lane.Mark {
		at := item(1, sequence, after(0), 0)
		at.Subject = subject
		m, _ := r.record(at)
		return m
	}
	record(1, "delay.1h.dark") // stops the cursor
	for sequence := range uint64(100) {
		subject := "delay.1h.ok"
		if sequence%10 == 9 {
			subject = "delay.1h.few"
		}
		if m := record(sequence+2, subject); sequence != 90 {
			r.cursor.Done(m)
		}
	}
	if _, wait := c.due(&r.cursor, local); wait != purgeAfter {
		t.Fatalf("due in %s, want %s", wait, purgeAfter)
	}
	local = local.Add(purgeAfter)
	todo := c.begin(r, local)
	if len(todo.outOfOrder) > 0 || len(todo.purges) != 1 {
		t.Fatalf("%d deletes and %d purges, want one purge", len(todo.outOfOrder), len(todo.purges))
	}
	if p := todo.purges[0]; p.Subject != "delay.1h.ok" || p.Below != 90+1 || len(p.Sequences) != 81 {
		t.Errorf("a purge of %s below %d with %d messages, want delay.1h.ok below 91 with 81", p.Subject, p.Below,
			len(p.Sequences))
	}
	c.finish(commitAnswer{commit: todo, err: errors.New("x")}, r, local)
	if got := r.cursor.OutOfOrder(); got != 99 {
		t.Errorf("%d messages are out of order after the commit failed, want 99", got)
	}
	local = local.Add(stuckAfter - purgeAfter)
	if todo = c.begin(r, local); len(todo.outOfOrder) != 18 || len(todo.purges) != 1 {
		t.Errorf("%d deletes and %d purges, want 18 and 1", len(todo.outOfOrder), len(todo.purges))
	}
	c.finish(commitAnswer{commit: todo}, r, local)
	if !c.upToDate(&r.cursor) {
		t.Errorf("%d messages are left, want none", r.cursor.OutOfOrder())
	}
}

// TestEntriesAreNotPurged: a commit of the timers' lane removes no entry, even if later entries have arrived.
func TestEntriesAreNotPurged(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_TIMERS", newTimersLane(nil, ""), jsapi.Client{}, nil)
	c.due(&r.cursor, local)
	stuck := item(1, 1, after(0), 0)
	stuck.Subject = "delaytimer.k.dark"
	r.record(stuck)
	for sequence := range uint64(2 * manyOutOfOrder) {
		arriveAt(r, sequence+2)
	}
	if due, _ := c.due(&r.cursor, local.Add(time.Hour)); due || c.crowded(&r.cursor) {
		t.Error("a commit is due, or the lane stops reading")
	}
	if todo := c.begin(r, local.Add(time.Hour)); len(todo.purges)+len(todo.outOfOrder) > 0 {
		t.Errorf("a commit has %d purges and %d deletes, want none", len(todo.purges), len(todo.outOfOrder))
	}
}

// TestOutOfOrderIsBounded: behind a message that stops the cursor, a lane reads only until 65,536 messages have
// arrived. It reads on when they are removed, and while commits fail.
func TestOutOfOrderIsBounded(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	c.due(&r.cursor, local)
	stuck := item(1, 1, after(0), 0) // stops the cursor
	stuck.Subject = "delay.1h.dark"
	r.record(stuck)
	sequence := uint64(1)
	for !c.crowded(&r.cursor) {
		sequence++
		arriveAt(r, sequence)
	}
	if sequence != maxOutOfOrder+1 {
		t.Errorf("the lane stops at %d messages, want %d", sequence-1, maxOutOfOrder)
	}
	todo := c.begin(r, local)
	c.finish(commitAnswer{commit: todo, err: errors.New("x")}, r, local)
	if c.crowded(&r.cursor) {
		t.Error("the lane stops while commits fail")
	}
	todo = c.begin(r, local)
	c.finish(commitAnswer{commit: todo}, r, local)
	if c.crowded(&r.cursor) || r.cursor.OutOfOrder() > maxOutOfOrder-maxPurged {
		t.Errorf("after a commit, %d messages are left", r.cursor.OutOfOrder())
	}
}

// TestUrgentBehindStuckCursor: the next commit deletes messages that were moved to wait for their reserved send times,
// even while the cursor moves. These messages do not delay the deletes of other messages that have arrived.
func TestUrgentBehindStuckCursor(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	c.due(&r.cursor, local)
	arriveAt(r, 1)
	r.record(item(1, 2, after(0), 0)) // stops the cursor
	arriveAt(r, 3)
	var todo commit
	for _, sequence := range []uint64{4, 5} {
		moved, _ := r.record(item(1, sequence, after(0), 0))
		r.cursor.DoneUrgent(moved)
		if now, wait := c.due(&r.cursor, local); !now {
			t.Fatalf("the commit of message %d is due in %s, want now", sequence, wait)
		}
		todo = c.begin(r, local)
		if want := []uint64{sequence}; todo.upTo != 1 || !slices.Equal(todo.outOfOrder, want) {
			t.Fatalf("commit up to %d, deletes of %v; want 1 and %v", todo.upTo, todo.outOfOrder, want)
		}
		c.finish(commitAnswer{commit: todo}, r, local)
		local = local.Add(minCommitInterval)
	}
	if _, wait := c.due(&r.cursor, local); wait != stuckAfter-2*minCommitInterval {
		t.Errorf("the commit of the other message is due in %s, want %s", wait, stuckAfter-2*minCommitInterval)
	}
}

// TestCommitAge: a message that arrives during a commit is not part of that commit. It counts as waiting since the
// commit began.
func TestCommitAge(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	arriveAt(r, 1)
	todo := c.begin(r, local)
	arriveAt(r, 2)
	later := local.Add(2 * time.Second)
	c.finish(commitAnswer{commit: todo, took: 2 * time.Second}, r, later)
	if since := c.uncommittedSince(&r.cursor, later); !since.Equal(local) {
		t.Errorf("after a commit of 2s, a message waits since %s, want 2s", later.Sub(since))
	}
}

// TestCommitOfAnotherEpoch: the answer of a commit of an earlier epoch does not change the present epoch.
func TestCommitOfAnotherEpoch(t *testing.T) {
	r, local := hourlyReading(), time.Now()
	c := newCommitter("DELAY_1h", plainLane{}, jsapi.Client{}, nil)
	r.record(item(1, 1, after(0), 0))
	arriveAt(r, 2)
	todo := c.begin(r, local)
	r.adopt(lane.Epoch{Number: 2, NewHistory: true})
	c.reset()
	if !c.running {
		t.Error("the commit in progress is dropped, and another may begin")
	}
	r.record(item(2, 1, after(0), 0))
	arriveAt(r, 2)
	r.cursor.TakeOutOfOrder(1)
	if c.finish(commitAnswer{commit: todo, err: lane.ErrOtherHistory}, r, local); r.cursor.OutOfOrder() != 0 {
		t.Error("a message is put back, although the failed commit had its sequence in another history")
	}
	todo.upTo = 100
	if c.finish(commitAnswer{commit: todo}, r, local) || c.committed != 0 {
		t.Errorf("committed up to %d by an answer of another epoch", c.committed)
	}
}

// TestSlowConfirmation: a commit relies on no sample that is older than confirmedFor, for example because the process
// was suspended. It takes another sample, because the final commit of a lane is not repeated.
func TestSlowConfirmation(t *testing.T) {
	for _, c := range []struct {
		delays []time.Duration // between the receipt of each sample and its use
		want   error
	}{
		{delays: []time.Duration{confirmedFor}},
		{delays: []time.Duration{confirmedFor + 1, time.Minute, confirmedFor}},
		{delays: []time.Duration{confirmedFor + 1, confirmedFor + 1, confirmedFor + 1}, want: errSlowConfirmation},
	} {
		synctest.Test(t, func(t *testing.T) {
			delays := c.delays
			sample := func(context.Context, string) (lane.Sample, error) {
				s := lane.Sample{Received: time.Now()}
				time.Sleep(delays[0])
				delays = delays[1:]
				return s, nil
			}
			committer := newCommitter("LANE", plainLane{}, jsapi.Client{}, sample)
			got, err := committer.confirm(t.Context(), commit{judge: new(lane.Judge)})
			if !errors.Is(err, c.want) || len(delays) > 0 {
				t.Errorf("delays %v: %v with %d samples not taken, want %v", c.delays, err, len(delays), c.want)
			}
			if err == nil && time.Since(got.Received) > confirmedFor {
				t.Errorf("delays %v: a sample of %s ago counts", c.delays, time.Since(got.Received))
			}
		})
	}
}

// TestCommitRemovesFewAtOnce: while a lane works, a commit sends only a few deletes concurrently, so that the server
// can answer other requests in between.
func TestCommitRemovesFewAtOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		var requests []*nats.Msg // not answered yet
		if _, err := nc.Subscribe("api.STREAM.MSG.DELETE.LANE", func(m *nats.Msg) {
			requests = append(requests, m)
		}); err != nil {
			t.Fatal(err)
		}
		c := newCommitter("LANE", plainLane{}, jsapi.Client{Conn: nc, API: "api"}, nil)
		r := hourlyReading()
		arriveAt(r, 1)
		r.record(item(1, 2, after(0), 0)) // stops the cursor
		for sequence := range uint64(2*maxCommitRemovals + 1) {
			arriveAt(r, sequence+3)
		}
		todo := c.begin(r, time.Now())
		todo.outOfOrder = r.cursor.TakeOutOfOrder(maxDeletes)
		removed := make(chan error, 1)
		go func() {
			removed <- c.removeAll(t.Context(), todo)
		}()
		const success = `{"type":"io.nats.jetstream.api.v1.stream_msg_delete_response","success":true}`
		for _, want := range []int{maxCommitRemovals, maxCommitRemovals, 1} {
			synctest.Wait()
			if len(requests) != want {
				t.Errorf("%d concurrent deletes, want %d", len(requests), want)
			}
			answered := requests
			requests = nil
			for _, m := range answered {
				if err := m.Respond([]byte(success)); err != nil {
					t.Error(err)
				}
			}
		}
		if err := <-removed; err != nil {
			t.Error(err)
		}
	})
}
