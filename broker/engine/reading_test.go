package engine

import (
	"testing"
	"time"

	"delaybroker/broker/lane"
)

// hourlyReading returns the reading of the level 1h, in its first epoch.
func hourlyReading() *reading {
	r := newReading(lane.NewReader(lane.ReaderConfig{}), time.Hour, "", 1)
	r.adopt(lane.Epoch{Number: 1, Sample: lane.Sample{LastSeq: 1000, Messages: 1000, Received: after(0)}})
	return r
}

func item(epoch, sequence uint64, at time.Time, behind uint64) lane.Item {
	return lane.Item{Epoch: epoch, Message: lane.Message{Sequence: sequence, At: at, Pending: behind}}
}

// TestResumeTime: a paused reading of a level resumes shortly before the last message read leaves the level. Reading a
// small level does not pause.
func TestResumeTime(t *testing.T) {
	r := hourlyReading()
	if _, later := r.resumeTime(minHeld, minHeldBytes); later {
		t.Error("no message was read, and reading pauses")
	}
	r.record(item(1, 1, after(0), 999))
	if _, later := r.resumeTime(minHeld-1, minHeldBytes-1); later {
		t.Error("few messages are in memory, and reading pauses")
	}
	for _, held := range [][2]int{{minHeld, 0}, {0, minHeldBytes}} {
		at, paused := r.resumeTime(held[0], held[1])
		if want := epoch.Add(time.Hour - readAhead); !paused || at != want {
			t.Errorf("with %v in memory, reading resumes at %s, %v; want %s", held, at.Sub(epoch), paused, want.Sub(epoch))
		}
	}
}

// TestAnotherHistory: when a stream has a new history, messages of the earlier history commit nothing, and the cursor
// and the last message read are reset.
func TestAnotherHistory(t *testing.T) {
	r := hourlyReading()
	old, present := r.record(item(1, 7, after(0), 0))
	if !present {
		t.Fatal("a message of this history is not present")
	}
	reset := lane.Epoch{Number: 2, NewHistory: true, Sample: lane.Sample{LastSeq: 3, Messages: 3, Received: after(1)}}
	if !r.adopt(reset) {
		t.Error("the epoch does not count as another history")
	}
	r.cursor.Done(old)
	if got := r.cursor.ArrivedThrough(); got != 0 {
		t.Errorf("arrived through %d after a message of the earlier history, want 0", got)
	}
	if _, present := r.record(item(1, 8, after(0), 0)); present {
		t.Error("a message of the earlier epoch counts")
	}
	if r.last.Sequence != 0 || r.pending() != 3 {
		t.Errorf("read up to %d with %d pending, want 0 and 3", r.last.Sequence, r.pending())
	}
	if r.adopt(lane.Epoch{Number: 3, Sample: lane.Sample{LastSeq: 3, Messages: 3, Received: after(2)}}) {
		t.Error("the same history counts as another history")
	}
}

// TestCaughtUp: a lane without a live consumer is not caught up, and before the first epoch no consumer is live.
func TestCaughtUp(t *testing.T) {
	r := hourlyReading()
	if r.caughtUp(epoch) {
		t.Error("the consumer is not alive, and the lane is caught up")
	}
	r.epoch = 0
	if r.live() {
		t.Error("no epoch has begun, and the consumer is alive")
	}
}

// TestPending: the number of messages behind the last one read comes from that message or from a sample of the stream,
// whichever is later.
func TestPending(t *testing.T) {
	r := hourlyReading()
	r.record(item(1, 10, after(0), 990))
	if got := r.pending(); got != 990 {
		t.Errorf("%d pending, want 990", got)
	}
	r.recordSample(lane.Sample{LastSeq: 1500, Messages: 1491, Received: after(1)})
	if got := r.pending(); got != 1490 {
		t.Errorf("%d pending after a sample, want 1490", got)
	}
	r.recordSample(lane.Sample{LastSeq: 1100, Messages: 1100, Received: after(0)}) // older than the last answer
	if got := r.pending(); got != 1490 {
		t.Errorf("%d pending after an older sample, want 1490", got)
	}
	r.recordSample(lane.Sample{LastSeq: 1600, Messages: 5, Received: after(2)}) // most sequences hold no message
	if got := r.pending(); got != 5 {
		t.Errorf("%d pending, want the 5 messages of the stream", got)
	}
}
