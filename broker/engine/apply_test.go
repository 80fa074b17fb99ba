package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

// TestUnknownStep: a step that does not exist panics.
func TestUnknownStep(t *testing.T) {
	w := tenSecondWorker(t, time.Now())
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "bug: ") {
			t.Errorf("a step that does not exist: %s", got)
		}
	}()
	w.apply(new(flight), step{kind: remove + 1}, moment{})
}

// inFlight returns a message of the lane that was read and is due at the time now.
func inFlight(w *worker, now time.Time) *flight {
	mark, _ := w.reading.record(lane.Item{Epoch: 1, Message: lane.Message{Sequence: 1, At: now.Add(-w.lane.Delay)}})
	f := w.flights.begin(lane.Message{Sequence: 1, At: now.Add(-w.lane.Delay), Data: []byte("x")}, mark)
	f.request = message.Request{ID: "x", Target: "orders.x", Due: now}
	return f
}

// TestArrivalEndsFlight: a message leaves memory and moves the cursor only after a target or a stream has stored it.
func TestArrivalEndsFlight(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		end  func(*worker, *flight, moment)
		want uint64 // the sequence up to which messages have arrived
	}{
		{"delivered", func(w *worker, f *flight, m moment) {
			(&delivered{flight: f, result: deliver.Result{Outcome: deliver.Delivered}}).handle(w, m)
		}, 1},
		{"not answered", func(w *worker, f *flight, m moment) {
			(&delivered{flight: f, result: deliver.Result{Outcome: deliver.Unknown, Err: acks.ErrTimeout}}).handle(w, m)
		}, 0},
		{"stored", func(w *worker, f *flight, m moment) {
			f.sent = &publish{kind: hop}
			stored{f, storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "X", Sequence: 1}}}}.handle(w, m)
		}, 1},
		{"not stored", func(w *worker, f *flight, m moment) {
			f.sent = &publish{kind: hop}
			stored{f, storeAnswer{Reply: jsapi.Reply{Err: acks.ErrTimeout}}}.handle(w, m)
		}, 0},
		{"duplicate, and ours", func(w *worker, f *flight, m moment) {
			f.sent = &publish{kind: retry}
			checked{f, "", true, nil}.handle(w, m)
		}, 1},
		{"duplicate, and not read", func(w *worker, f *flight, m moment) {
			f.sent = &publish{kind: retry}
			checked{f, "", false, acks.ErrTimeout}.handle(w, m)
		}, 0},
	} {
		w := tenSecondWorker(t, now)
		f := inFlight(w, now)
		tt.end(w, f, w.moment(now))
		got, inMemory := w.reading.cursor.ArrivedThrough(), w.flights.count
		if got != tt.want || inMemory != 1-int(tt.want) {
			t.Errorf("%s: arrived up to %d and %d in memory, want %d and %d", tt.name, got, inMemory, tt.want, 1-tt.want)
		}
		if tt.want == 0 && w.flights.waiting() != 1 {
			t.Errorf("%s: the message does not wait for its next decision", tt.name)
		}
	}
}

// TestUnansweredPublishStays: a publish without an answer is repeated unchanged. After a refusal, the worker decides
// the next step again.
func TestUnansweredPublishStays(t *testing.T) {
	now := time.Now()
	w := tenSecondWorker(t, now)
	f := inFlight(w, now)
	small, _ := w.plan.Ladder.Lookup("1s")
	sent := &publish{kind: hop, level: small}
	f.sent = sent
	stored{f, storeAnswer{Reply: jsapi.Reply{Err: acks.ErrTimeout}}}.handle(w, w.moment(now))
	if f.sent != sent || f.refusedBy != "" {
		t.Error("without an answer, the publish was dropped, or counts as refused")
	}
	stored{f, storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Code: 10077}}}}.handle(w, w.moment(now))
	if f.sent != nil || f.refusedBy != "1s" {
		t.Errorf("after a refusal: publish %+v, refused by %q; want none, refused by 1s", f.sent, f.refusedBy)
	}
	if got := w.engine.Tally.Unstored.Load(); got != 1 {
		t.Errorf("%d refusals are counted, want 1", got)
	}
}

// TestExpiresByLocalClock: the deliverer gets the expiry by the local clock, even if the leader's clock differs, and
// the pass began some time ago.
func TestExpiresByLocalClock(t *testing.T) {
	began := time.Now().Add(-time.Second)
	w := tenSecondWorker(t, began)
	f, m := inFlight(w, began), w.moment(began)
	m.now = m.now.Add(time.Hour) // the leader's clock is an hour ahead
	f.request.Expires = m.now.Stamp().Add(time.Minute)
	w.fire(f, m)
	if got, want := (*w.engine.Deliver.(*recorder))[0].Expires, began.Add(time.Minute); !got.Equal(want) {
		t.Errorf("the delivery expires %v after the pass began, want %v", got.Sub(began), want.Sub(began))
	}
}

// TestRefusedHopEndsOverdue: after a refused hop, a message that may wait in its lane until the due time is not
// overdue any more.
func TestRefusedHopEndsOverdue(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		remaining time.Duration
		want      int // number of overdue messages
	}{"due soon": {time.Second, 0}, "far from due": {time.Hour, 1}} {
		w := tenSecondWorker(t, now)
		f := inFlight(w, now)
		f.request.Due = now.Add(tt.remaining)
		level, _ := w.plan.Ladder.Lookup("1s") // the shortest level
		if tt.want == 0 {
			level, _ = w.plan.Ladder.Lookup("5s")
		}
		w.flights.setOverdue(f, f.storedAt(), true)
		f.sent = &publish{kind: hop, level: level}
		stored{f, storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Code: 10077}}}}.handle(w, w.moment(now))
		if got := w.flights.overdue.Len(); got != tt.want {
			t.Errorf("%s: %d messages are overdue, want %d", name, got, tt.want)
		}
	}
}

// TestRefusedDeadLetterIsRepeated: if a dead letter cannot be stored, the message's next step is a dead letter again.
// If the dead letter followed the last attempt, the message is delivered again.
func TestRefusedDeadLetterIsRepeated(t *testing.T) {
	now := time.Now()
	problem := message.Problemf(message.TooLarge, "x")
	for attempts, want := range map[int]*message.Problem{0: problem, 1: nil} {
		w := tenSecondWorker(t, now)
		f := inFlight(w, now)
		f.sent = &publish{kind: dead, problem: problem, request: &message.Request{Attempts: attempts}}
		stored{f, storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Code: 10077}}}}.handle(w, w.moment(now))
		if f.problem != want {
			t.Errorf("a dead letter with %d attempts: problem %v, want %v", attempts, f.problem, want)
		}
	}
}

// TestSilencesAreCounted: each silence is counted. The loss of the connection neither counts as a silence nor resets
// the count.
func TestSilencesAreCounted(t *testing.T) {
	now := time.Now()
	w := tenSecondWorker(t, now)
	f := inFlight(w, now)
	silent := deliver.Result{Outcome: deliver.Unknown, Err: acks.ErrTimeout}
	for want := 1; want < silentTries; want++ {
		(&delivered{flight: f, result: silent}).handle(w, w.moment(now))
		if f.silences != want {
			t.Fatalf("%d silences, want %d", f.silences, want)
		}
	}
	r := deliver.Result{Outcome: deliver.Unknown, Err: acks.ErrDisconnected}
	(&delivered{flight: f, result: r}).handle(w, w.moment(now))
	if f.silences != silentTries-1 {
		t.Errorf("%d silences after the connection was lost, want %d", f.silences, silentTries-1)
	}
}

// answerer is a deliverer that keeps the function of the last delivery.
type answerer struct {
	recorder
	done func(deliver.Result)
}

func (a *answerer) Deliver(_ deliver.Message, done func(deliver.Result)) { a.done = done }

// TestDeliveryTimeUsesItsProof: a weaker proof of the leader's time, which arrives between a delivery and its answer,
// does not put the time of the delivery before the due time.
func TestDeliveryTimeUsesItsProof(t *testing.T) {
	now := time.Now()
	w, to := tenSecondWorker(t, now), new(answerer)
	w.engine.Deliver = to
	f := inFlight(w, now)
	w.fire(f, w.moment(now))
	later := now.Add(time.Second)
	slow := leader.Reading{Time: later.Round(0).Add(-time.Millisecond), Received: later, LastSeq: 300}
	w.clock.Record(slow)
	to.done(deliver.Result{Outcome: deliver.Delivered, Time: now.Add(time.Microsecond)})
	var at time.Time
	w.engine.Settings.Ended = func(e config.Ended) { at = e.At }
	w.mail.take()[0].handle(w, w.moment(later))
	if late := at.Sub(f.request.Due.Round(0)); late != time.Microsecond {
		t.Errorf("delivered %s after it was due, want 1µs", late)
	}
}
