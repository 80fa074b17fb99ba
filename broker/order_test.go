package broker

import (
	"log/slog"
	"testing"
	"time"

	"delaybroker/levels/lane"
	"delaybroker/levels/owners"
	"delaybroker/wheel"
)

// TestStampsThatFallBack reads a level whose first message was stamped by a leader five seconds ahead of the next: those
// behind it are due before it, and wait for it neither to be read nor to go out.
func TestStampsThatFallBack(t *testing.T) {
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := StreamsOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	spec := lane.Spec{Stream: "DELAY_10s", Kind: lane.Level, Name: "10s", Delay: 10 * time.Second}
	lease, err := owners.Static{}.Acquire(t.Context(), spec.Stream, func() {})
	if err != nil {
		t.Fatal(err)
	}
	base := time.Now()
	w := &worker{
		engine: s.e, lane: spec, lease: lease, log: slog.New(slog.DiscardHandler), reader: lane.NewReader(lane.ReaderConfig{Lane: spec}),
		clock: newClock(base), wheel: wheel.New[*held](), late: wheel.New[struct{}](), complaints: make(map[string]complaint), gauge: new(gauge),
	}
	w.account = newBudget(DefaultHoldBytes, 1).open(freeShare, func() {})
	w.clock.look(lane.Sample{ServerTime: base.Round(0), Received: base, LastSeq: 300})
	store := func(seq uint64, ago time.Duration) {
		w.read(lane.Item{Epoch: 1, Stored: lane.Stored{Sequence: seq, At: base.Round(0).Add(-ago), Subject: "delay.10s.orders.x", Size: 64, Behind: 300 - seq}}, base)
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
