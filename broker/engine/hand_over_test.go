package engine

import (
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
)

// TestHandedOverCountsOnce: while a message is handed over, the result of its delivery and the answer to its copy come
// in either order, and the retry lane stores the copy or refuses it. Each time, the result is counted once, and the
// worker waits for nothing before the release of the lease. Only for a result that comes after the copy was stored, it
// waits after the release.
func TestHandedOverCountsOnce(t *testing.T) {
	for _, tt := range []struct {
		name        string
		resultFirst bool
		stored      bool
		wantLate    int // after the first of both events
	}{
		{"the copy, then the result", false, true, 1},
		{"the result, then the copy", true, true, 0},
		{"the refused copy, then the result", false, false, 0},
		{"the result, then the refused copy", true, false, 0},
	} {
		now := time.Now()
		w := tenSecondWorker(t, now)
		f, m := inFlight(w, now), w.moment(now)
		w.flights.beginDelivery(f)
		f.handOver = &handOver{publish: &publish{kind: retry}}
		w.flights.unanswered++ // the publish of the copy
		answer := storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "X", Sequence: 7}}}
		if !tt.stored {
			answer = storeAnswer{Reply: jsapi.Reply{Err: acks.ErrTimeout}}
		}
		copied := handedOver{f, answer}
		result := &delivered{flight: f, result: deliver.Result{Outcome: deliver.Unknown, Err: acks.ErrTimeout}}
		events := []event{copied, result}
		if tt.resultFirst {
			events = []event{result, copied}
		}
		events[0].handle(w, m)
		if w.flights.unanswered != 1-tt.wantLate || w.flights.late != tt.wantLate {
			t.Errorf("%s: after the first, %d are unanswered and %d late, want %d and %d", tt.name, w.flights.unanswered,
				w.flights.late, 1-tt.wantLate, tt.wantLate)
		}
		events[1].handle(w, m)
		results := w.engine.Tally.Outcomes[deliver.Unknown].Load()
		if w.flights.unanswered != 0 || w.flights.late != 0 || len(w.flights.open) != 0 || results != 1 {
			t.Errorf("%s: in the end, %d are unanswered, %d late, %d open, and %d results counted, want 0, 0, 0 and 1", tt.name,
				w.flights.unanswered, w.flights.late, len(w.flights.open), results)
		}
	}
}
