package engine

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// TestTimestampsFallBack reads a level whose first message was stamped by a leader whose clock was five seconds ahead
// of the next leader's clock. So the messages behind the first message are due before the first. The worker reads and
// sends them when they are due.
func TestTimestampsFallBack(t *testing.T) {
	base := time.Now()
	w := tenSecondWorker(t, base)
	store := func(seq uint64, ago time.Duration) {
		w.read(itemStoredAgo(seq, 300, base, ago), base)
	}
	store(1, 3*time.Second) // stamped by the first leader
	for seq := range uint64(299) {
		if !w.wantsMore(base) {
			t.Fatalf("after %d messages, reading waits until the first is due", seq+1)
		}
		store(seq+2, 8*time.Second)
	}
	now := leader.At(base.Round(0))
	if next, ok := w.flights.nextTime(); !ok || next.Sub(now) > 2*time.Second+time.Millisecond {
		t.Fatalf("the next message is due %s from now, want 2s: a message behind the first", next.Sub(now))
	}
	n := 0
	for _, f := range w.flights.takeDue(now.Add(2 * time.Second)) {
		if f.Sequence == 1 {
			t.Error("the first message was sent before its due time")
		}
		n++
	}
	if n != 299 {
		t.Errorf("%d messages are due after 2s, want all 299 behind the first", n)
	}
}

// TestDueBeforeLaterRead: messages that became due while the loop was busy, or while the leader's time was not proven,
// are sent before messages that are read afterwards and are due later.
func TestDueBeforeLaterRead(t *testing.T) {
	for name, busy := range map[string]time.Duration{"busy": leader.Trust / 2, "the time unknown": 2 * leader.Trust} {
		t.Run(name, func(t *testing.T) {
			base := time.Now()
			w := tenSecondWorker(t, base)
			const count = 300
			for i := range count { // due every 10 µs from 10 ms after base on; the last third is read when all are due
				at := base
				if i >= 2*count/3 {
					at = base.Add(busy)
				}
				w.read(itemStoredAgo(uint64(i+1), count, base, 9990*time.Millisecond-time.Duration(i)*10*time.Microsecond), at)
			}
			then := base.Add(busy)
			w.clock.record(lane.Sample{ServerTime: then.Round(0), Received: then, LastSeq: count})
			m := w.moment(then)
			w.decideUntimed(m)
			w.send(m)
			sent := *w.engine.Deliver.(*recorder)
			if len(sent) != count {
				t.Fatalf("%d messages were sent, want %d", len(sent), count)
			}
			for i, m := range sent {
				if want := fmt.Sprint(i + 1); string(m.Data) != want {
					t.Fatalf("message %s was sent, want %s", m.Data, want)
				}
			}
		})
	}
}

// TestOverdueIsSentByDueTime: messages that awaited a hop when an outage began, and that are overdue after the outage,
// are sent in the order of their due times, and not in the order of their hops.
func TestOverdueIsSentByDueTime(t *testing.T) {
	base := time.Now()
	w := tenSecondWorker(t, base)
	for seq, wait := range []time.Duration{3 * time.Minute, time.Minute, 2 * time.Minute} {
		f := w.flights.begin(itemStoredAgo(uint64(seq+1), 3, base, 0).Message, lane.Mark{})
		f.request.Due = base.Round(0).Add(wait)
		w.proceed(f, w.moment(base))
	}
	then := base.Add(time.Hour)
	w.clock.record(lane.Sample{ServerTime: then.Round(0), Received: then, LastSeq: 3})
	w.send(w.moment(then))
	var got string
	for _, m := range *w.engine.Deliver.(*recorder) {
		got += string(m.Data)
	}
	if got != "231" {
		t.Errorf("sent in the order %s, want 231", got)
	}
}

// TestFullLaneWaitsForAnswers: a full lane with a backlog sends further messages when half of its sent messages are
// answered, or after answerWait. The lane waits only once for the answers of a silent target.
func TestFullLaneWaitsForAnswers(t *testing.T) {
	base := time.Now()
	w := tenSecondWorker(t, base)
	w.engine.Settings.HoldMessages = 16 // the lane holds at most twice as many
	seq := uint64(0)
	read := func(n int, at time.Time) { // all are due at the same time, so reading does not pause
		for range n {
			seq++
			w.read(itemStoredAgo(seq, 300, base, 15*time.Second), at)
		}
	}
	answer := func(n int) { w.flights.unanswered, w.flights.count = w.flights.unanswered-n, w.flights.count-n }
	expect := func(at time.Time, want int) (wait time.Duration) {
		t.Helper()
		wait = w.send(moment{now: leader.At(base.Round(0).Add(at.Sub(base))), local: at, proven: true})
		if sent := *w.engine.Deliver.(*recorder); len(sent) != want {
			t.Fatalf("%d messages were sent after %s, want %d", len(sent), at.Sub(base), want)
		}
		return wait
	}
	read(32, base)
	expect(base, 32)
	answer(16)
	read(16, base)
	expect(base, 48)

	answer(12) // of 32; the other messages have a silent target
	read(12, base)
	if wait := expect(base, 48); wait != answerWait {
		t.Errorf("the lane waits %s for answers, want %s", wait, answerWait)
	}
	expect(base.Add(answerWait-1), 48)
	then := base.Add(answerWait)
	expect(then, 60)

	answer(12)
	read(12, then)
	expect(then, 72)
}

// itemStoredAgo returns a message of the level 10s that was stored at the time base less ago. Last is the last sequence
// of the stream.
func itemStoredAgo(seq, last uint64, base time.Time, ago time.Duration) lane.Item {
	return lane.Item{Epoch: 1, Message: lane.Message{
		Sequence: seq, At: base.Round(0).Add(-ago), Pending: last - seq,
		Subject: "delay.10s.orders.x", Data: []byte(fmt.Sprint(seq)), Size: 64,
	}}
}

// tenSecondWorker returns a worker of the level 10s.
func tenSecondWorker(t *testing.T, now time.Time) *worker {
	t.Helper()
	l := streams.Spec{Stream: "DELAY_10s", Kind: streams.Level, Name: "10s", Delay: 10 * time.Second}
	return newTestWorker(t, l, now)
}

// TestReadMessagesArePacked: a message that is read long before it is due waits packed. A message that is due soon does
// not.
func TestReadMessagesArePacked(t *testing.T) {
	base := time.Now()
	w := tenSecondWorker(t, base)
	w.read(itemStoredAgo(1, 2, base, 10*time.Second-minPackedWait+1), base)
	if w.flights.packed != 0 || w.flights.waiting() != 1 {
		t.Errorf("after a message that is due soon: %d packed, %d waiting", w.flights.packed, w.flights.waiting())
	}
	w.read(itemStoredAgo(2, 2, base, time.Second), base)
	if w.flights.packed != 1 || w.flights.waiting() != 2 {
		t.Errorf("with a message due later: %d packed, %d waiting, want 1, 2", w.flights.packed, w.flights.waiting())
	}
}
