package engine

import (
	"testing"
	"time"

	"delaybroker/broker/lane"
)

// hourly returns the reading of a level of an hour, in its first epoch.
func hourly() *reading {
	r := newReading(lane.NewReader(lane.ReaderConfig{}), time.Hour, "", 1)
	r.adopt(lane.Epoch{Number: 1, Info: lane.Sample{LastSeq: 1000, Messages: 1000, Received: after(0)}})
	return r
}

func item(epoch, sequence uint64, at time.Time, behind uint64) lane.Item {
	return lane.Item{Epoch: epoch, Stored: lane.Stored{Sequence: sequence, At: at, Behind: behind}}
}

// TestResumes: reading of a level resumes shortly before the last message read leaves the level. In a small level it
// does not pause.
func TestResumes(t *testing.T) {
	r := hourly()
	if _, later := r.resumes(minHeld, minHeldBytes); later {
		t.Error("nothing was read, and it rests")
	}
	r.record(item(1, 1, after(0), 999))
	if _, later := r.resumes(minHeld-1, minHeldBytes-1); later {
		t.Error("little is in memory, and it rests")
	}
	for _, much := range [][2]int{{minHeld, 0}, {0, minHeldBytes}} {
		at, later := r.resumes(much[0], much[1])
		if want := epoch.Add(time.Hour - readAhead); !later || at != want {
			t.Errorf("with %v in memory it resumes at %s, %v; want %s", much, at.Sub(epoch), later, want.Sub(epoch))
		}
	}
}

// TestAnotherHistory: a message of another history commits nothing, and all data of that history is forgotten.
func TestAnotherHistory(t *testing.T) {
	r := hourly()
	old, present := r.record(item(1, 7, after(0), 0))
	if !present {
		t.Fatal("a message of this history is not present")
	}
	if !r.adopt(lane.Epoch{Number: 2, Fresh: true, Info: lane.Sample{LastSeq: 3, Messages: 3, Received: after(1)}}) {
		t.Error("it is not taken for another history")
	}
	r.cursor.Done(old)
	if got := r.cursor.Arrived(); got != 0 {
		t.Errorf("%d has arrived, of the history before", got)
	}
	if _, present := r.record(item(1, 8, after(0), 0)); present {
		t.Error("a message of the epoch before counts")
	}
	if r.last.Sequence != 0 || r.behind() != 3 {
		t.Errorf("read up to %d with %d behind, want 0 and 3", r.last.Sequence, r.behind())
	}
	if r.adopt(lane.Epoch{Number: 3, Info: lane.Sample{LastSeq: 3, Messages: 3, Received: after(2)}}) {
		t.Error("the same history is taken for another")
	}
}

// TestCaughtUp: no lane is caught up before its stream was sampled in this epoch.
func TestCaughtUp(t *testing.T) {
	r := hourly()
	if r.caughtUp(epoch) {
		t.Error("the consumer is not alive, and everything was read")
	}
	r.epoch = 0
	if r.live() {
		t.Error("no epoch has begun, and it is alive")
	}
}

// TestBehind counts the messages behind the last one read, by that message or by a sample of the stream, whichever is
// later.
func TestBehind(t *testing.T) {
	r := hourly()
	r.record(item(1, 10, after(0), 990))
	if got := r.behind(); got != 990 {
		t.Errorf("%d behind, want 990", got)
	}
	r.looked(lane.Sample{LastSeq: 1500, Messages: 1491, Received: after(1)})
	if got := r.behind(); got != 1490 {
		t.Errorf("%d behind after a look, want 1490", got)
	}
	r.looked(lane.Sample{LastSeq: 1100, Messages: 1100, Received: after(0)}) // older than the last answer
	if got := r.behind(); got != 1490 {
		t.Errorf("%d behind after an older look, want 1490", got)
	}
	r.looked(lane.Sample{LastSeq: 1600, Messages: 5, Received: after(2)}) // most sequences hold no message
	if got := r.behind(); got != 5 {
		t.Errorf("%d behind, and there are but 5 messages", got)
	}
}
