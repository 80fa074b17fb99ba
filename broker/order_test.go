package broker

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/wheel"
)

// TestStampsThatFallBack reads a level whose first message was stamped by a leader five seconds ahead of the next: those
// behind it are due before it, and wait for it neither to be read nor to go out.
func TestStampsThatFallBack(t *testing.T) {
	base := time.Now()
	w := tenSeconds(t, base)
	store := func(seq uint64, ago time.Duration) {
		w.read(storedAgo(seq, 300, base, ago), base)
	}
	store(1, 3*time.Second) // by the fast leader
	for seq := range uint64(299) {
		if !w.hungry(base) {
			t.Fatalf("after %d messages it waits for the first to be due", seq+1)
		}
		store(seq+2, 8*time.Second)
	}
	if next, ok := w.wheel.Next(); !ok || next.Sub(base.Round(0)) > 2*time.Second+time.Millisecond {
		t.Fatalf("the next one is due %s from now, want 2s: those behind the first", next.Sub(base.Round(0)))
	}
	n := 0
	for _, h := range w.wheel.Advance(base.Round(0).Add(2 * time.Second)) {
		if h.Sequence == 1 {
			t.Error("the first came before it was due")
		}
		n++
	}
	if n != 299 {
		t.Errorf("%d are due after 2s, want all 299 behind the first", n)
	}
}

// TestReadBehindWhatIsDue: what became due while the loop was busy, or did not know the time, goes out before what is read
// then and due later.
func TestReadBehindWhatIsDue(t *testing.T) {
	for name, busy := range map[string]time.Duration{"busy": clockTrust / 2, "the time unknown": 2 * clockTrust} {
		t.Run(name, func(t *testing.T) {
			base := time.Now()
			w := tenSeconds(t, base)
			var sent recorder
			w.deliver = &sent
			const count = 300
			for i := range count { // due from 10 ms after base on, one every 10 µs; the last third are read when all are due
				at := base
				if i >= 2*count/3 {
					at = base.Add(busy)
				}
				w.read(storedAgo(uint64(i+1), count, base, 9990*time.Millisecond-time.Duration(i)*10*time.Microsecond), at)
			}
			then := base.Add(busy)
			w.clock.look(lane.Sample{ServerTime: then.Round(0), Received: then, LastSeq: count})
			w.send(then.Round(0), then)
			if len(sent) != count {
				t.Fatalf("%d were sent, want %d", len(sent), count)
			}
			for i, m := range sent {
				if want := fmt.Sprint(i + 1); string(m.Data) != want {
					t.Fatalf("number %s was sent where %s should have been", m.Data, want)
				}
			}
		})
	}
}

// TestFullLaneWaitsForAnswers: a lane that is full while it has a backlog sends what it holds when most of what it sent is
// answered, or has not been for a while: a silent target keeps it full for longer. Nor does it wait for that one again.
func TestFullLaneWaitsForAnswers(t *testing.T) {
	base := time.Now()
	w := tenSeconds(t, base)
	var sent recorder
	w.deliver = &sent
	w.cfg.HoldMessages = 16 // so 32 are all it holds
	seq := uint64(0)
	read := func(n int, at time.Time) { // due together, so that more of them may yet be read
		for range n {
			seq++
			w.read(storedAgo(seq, 300, base, 15*time.Second), at)
		}
	}
	answer := func(n int) { w.underway, w.held = w.underway-n, w.held-n }
	expect := func(at time.Time, want int) (wait time.Duration) {
		t.Helper()
		if wait = w.send(base.Round(0).Add(at.Sub(base)), at); len(sent) != want {
			t.Fatalf("%d were sent after %s, want %d", len(sent), at.Sub(base), want)
		}
		return wait
	}
	read(32, base)
	expect(base, 32)
	answer(16)
	read(16, base)
	expect(base, 48)

	answer(12) // of 32; the target of the others is silent
	read(12, base)
	if wait := expect(base, 48); wait != answerWait {
		t.Errorf("it waits %s for answers, want %s", wait, answerWait)
	}
	expect(base.Add(answerWait-1), 48)
	then := base.Add(answerWait)
	expect(then, 60)

	answer(12)
	read(12, then)
	expect(then, 72)
}

// recorder is a deliverer that answers nothing.
type recorder []deliver.Message

func (r *recorder) Deliver(m deliver.Message, _ func(deliver.Result)) { *r = append(*r, m) }
func (r *recorder) Recall(deliver.Owner)                              {}
func (r *recorder) Drain()                                            {}

// storedAgo is one of the messages of a level of ten seconds, as it is read.
func storedAgo(seq, last uint64, base time.Time, ago time.Duration) lane.Item {
	return lane.Item{Epoch: 1, Stored: lane.Stored{
		Sequence: seq, At: base.Round(0).Add(-ago), Subject: "delay.10s.orders.x", Data: []byte(fmt.Sprint(seq)), Size: 64, Behind: last - seq,
	}}
}

// tenSeconds is a worker of such a level, of which the leader said at the time base what the time is.
func tenSeconds(t *testing.T, base time.Time) *worker {
	t.Helper()
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := StreamsOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	spec := layout.Spec{Stream: "DELAY_10s", Kind: layout.Level, Name: "10s", Delay: 10 * time.Second}
	lease, err := lease.Static{}.Acquire(t.Context(), spec.Stream, func() {})
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{
		engine: s.e, lane: spec, lease: lease, log: slog.New(slog.DiscardHandler), reader: lane.NewReader(lane.ReaderConfig{Stream: spec.Stream, Delay: spec.Delay}),
		clock: newClock(base), wheel: wheel.New[*held](), late: wheel.New[struct{}](), complaints: make(map[string]complaint), gauge: new(gauge),
	}
	w.account = newBudget(DefaultHoldBytes, 1).open(freeShare, func() {})
	w.clock.look(lane.Sample{ServerTime: base.Round(0), Received: base, LastSeq: 300})
	return w
}
