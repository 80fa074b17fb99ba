package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
)

// entryRead returns an entry of the timers' stream that the worker of its lane has just read.
func entryRead(w *worker, sequence uint64, now time.Time, header message.Header) *flight {
	s := lane.Message{Sequence: sequence, At: now, Subject: "delaytimer.key.orders.x", Header: header}
	mark, _ := w.reading.record(lane.Item{Epoch: 1, Message: s})
	f := w.flights.begin(s, mark)
	w.parse(f, f.Incoming(w.lane.Stream))
	return f
}

func firedHeader(f *flight, generation uint64, by string) message.Header {
	return entry.Pending{Request: f.request}.FiredHeader(generation, by)
}

// TestPendingSetIsReplaced: a pending set is dropped when another entry of its subject is read. A set that may have
// fired is kept, and its state is read from the leader.
func TestPendingSetIsReplaced(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		header func(f *flight) message.Header
		kept   bool
		keys   *message.Keys
	}{
		"sealed with an unknown key": {func(f *flight) message.Header {
			h := firedHeader(f, 7, "me")
			message.NewKeys([]string{"another, as long"}).SealMessage(f.Subject, h, nil)
			return h
		}, true, message.NewKeys([]string{"a secret of sixteen"})},
		"its firing":       {func(f *flight) message.Header { return firedHeader(f, 7, "me") }, true, nil},
		"a foreign firing": {func(f *flight) message.Header { return firedHeader(f, 6, "me") }, false, nil},
		"another set":      {func(*flight) message.Header { return message.Header{"Delay-For": {"1h"}} }, false, nil},
		"a cancel":         {func(*flight) message.Header { return message.Header{"Delay-Cancel": {"1"}} }, false, nil},
		"no valid header":  {func(*flight) message.Header { return nil }, false, nil},
		"an outcome": {func(f *flight) message.Header {
			return entry.Pending{Request: f.request}.OverHeader(7, 8, entry.Delivered)
		}, false, nil},
	} {
		for stage, doubt := range map[string]func(*worker, *flight){
			"hold until": func(w *worker, f *flight) { w.flights.hold(f, f.nextAttempt()) },
			"examine": func(w *worker, f *flight) { // the answer to its firing was lost
				w.flights.unanswered++
				answered(f, storeAnswer{Reply: jsapi.Reply{Err: acks.ErrTimeout}}).handle(w, w.moment(now))
			},
		} {
			w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
			w.timers.lane.Policy.Keys = tt.keys
			f := entryRead(w, 7, now, message.Header{"Delay-For": {"1s"}})
			if doubt(w, f); !isInDoubt(w, f) == (stage == "examine") || w.flights.waiting() != 1 {
				t.Fatalf("%s: in doubt %t, and %d messages wait", stage, isInDoubt(w, f), w.flights.waiting())
			}
			entryRead(w, 9, now, tt.header(f))
			entryRead(w, 10, now, message.Header{"Delay-For": {"2h"}})
			kept := tt.kept || stage == "examine"
			if got := w.flights.waiting() == 1; got != kept || kept != isInDoubt(w, f) {
				t.Errorf("%s, before %q: kept: %t, want %t; then in doubt %t", name, stage, got, kept, isInDoubt(w, f))
			}
		}
	}
}

// answered returns the event that the timers' stream has answered the publish of a firing, or has not answered.
func answered(f *flight, a storeAnswer) timerAnswered {
	return timerAnswered{flight: f, event: role.Published(a.Reply)}
}

// isInDoubt reports whether a timer must be read from the leader when it is due.
func isInDoubt(w *worker, f *flight) bool {
	return nextStep(w.plan, moment{now: f.nextAttempt(), proven: true}, f).kind == examine
}

// TestFiredStaysFired: after the firing is stored, the message is delivered even if other entries of its subject are
// read.
func TestFiredStaysFired(t *testing.T) {
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	f := entryRead(w, 7, now.Add(-time.Second), message.Header{"Delay-For": {"1s"}})
	stored := storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: 8}}}
	answered(f, stored).handle(w, w.moment(now))
	if d := w.engine.Deliver.(*recorder); len(*d) != 1 || (*d)[0].Target != "orders.x" {
		t.Fatalf("the message was not delivered: %+v", *d)
	}
	entryRead(w, 9, now, message.Header{"Delay-Cancel": {"1"}})
	if s := nextStep(w.plan, w.moment(now), f); s.kind != fire {
		t.Errorf("after a cancel, the next step of the timer is %s", s)
	}
}

// TestMissedLastRoundIsCountedOnce: the last round of a series is missed, and both its marker and the sweep find this.
// The outcome of the series is stored once, and only the worker that stores it counts the round.
func TestMissedLastRoundIsCountedOnce(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		second storeAnswer
		want   uint64
	}{
		"outcome already stored":  {storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Code: jsapi.CodeWrongLast}}}, 1},
		"no room for the outcome": {storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Code: jsapi.CodeTooLarge}}}, 2},
	} {
		w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
		w.timers.lane.History = time.Hour
		first := storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: 8}}}
		for i, answer := range []storeAnswer{first, tt.second} {
			f := lastRound(w, uint64(5+i), now)
			w.claim(f, moment{now: leader.At(now.Add(3 * time.Hour))})
			if got := w.engine.Tally.MissedRounds.Load(); got != uint64(i) {
				t.Errorf("%s: before outcome %d is stored, %d rounds are counted, want %d", name, i+1, got, i)
			}
			w.flights.unanswered++
			s, _ := w.timers.queue.take(nil)
			if i > 0 {
				s, _ = w.timers.queue.take(nil) // the first one is to be removed
			}
			event := role.Published(answer.Reply)
			settlementAnswered{s, event}.handle(w, w.moment(now))
		}
		if got := w.engine.Tally.MissedRounds.Load(); got != tt.want {
			t.Errorf("%s: %d rounds are counted, want %d", name, got, tt.want)
		}
	}
}

// TestMissedLastRoundWithoutHistory: without a history, no outcome is stored, so the round is counted at once.
func TestMissedLastRoundWithoutHistory(t *testing.T) {
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	w.claim(lastRound(w, 5, now), moment{now: leader.At(now.Add(3 * time.Hour))})
	if got := w.engine.Tally.MissedRounds.Load(); got != 1 || w.timers.count != 1 {
		t.Errorf("%d rounds are counted, and %d timers are settled; want one", got, w.timers.count)
	}
}

// lastRound returns the only round of a series, which is due in an hour.
func lastRound(w *worker, sequence uint64, now time.Time) *flight {
	return entryRead(w, sequence, now, message.Header{
		"Delay-Every": {"1h"}, "Delay-Missed-Rounds": {"skip"},
		"Delay-Last": {now.Add(90 * time.Minute).UTC().Format(time.RFC3339)},
	})
}

// TestEarlierFiringsByTheLeadersClock: the worker compares the stored time of a firing with the time at which this
// instance became the owner, both by the leader's clock. It reads the state of an earlier firing. A later firing is
// left to the worker that stored it. Until the leader has reported its time, all firings count as earlier.
func TestEarlierFiringsByTheLeadersClock(t *testing.T) {
	now := time.Now()
	lane := streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}
	set := entryRead(newTestWorker(t, lane, now), 7, now, message.Header{"Delay-For": {"1s"}})
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour} { // of the leader's clock
		for _, tt := range []struct {
			stored  time.Duration // after the lane became ours
			unknown bool          // the leader has not reported its time
			read    bool          // the state must be read
		}{
			{stored: -1, read: true},
			{stored: 0},
			{stored: time.Minute},
			{stored: -time.Minute, read: true, unknown: true},
		} {
			w := newTestWorker(t, lane, now)
			w.plan.kind.(*timersLane).activeSince, w.clock = now, newLeaderClock(now)
			if !tt.unknown {
				w.clock.Record(leader.Reading{Time: now.Round(0).Add(offset), Received: now, LastSeq: 300})
			}
			f := entryRead(w, 9, now.Add(offset+tt.stored), firedHeader(set, 7, "other"))
			if got := isInDoubt(w, f); got != tt.read {
				t.Errorf("clock offset %s, stored %s after the lane became ours, clock unknown %t: read %t, want %t",
					offset, tt.stored, tt.unknown, got, tt.read)
			}
		}
	}
}

// TestLoadedHeaders: the client's headers of a loaded timer count as memory, like the body.
func TestLoadedHeaders(t *testing.T) {
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	f := entryRead(w, 7, now, message.Header{"Delay-Until": {"2030-01-01T00:00:00Z"}})
	f.timer.Size = 1000
	before := w.flights.bytes
	w.load(f, loadShare)
	const count, length = 20, 100
	in := f.Incoming("DELAY_TIMERS")
	for i := range count {
		in.Header[fmt.Sprintf("X-%03d", i)] = []string{strings.Repeat("v", length)}
	}
	for range 2 { // the second read replaces the first
		e := entry.Parse(w.timers.lane.Policy, in)
		w.applyToTimer(f, role.Step{Kind: role.Hold, At: f.nextAttempt(),
			Content: &role.Content{Request: e.Request, Body: make([]byte, 1000)}}, w.moment(now))
		perHeader := 2*(length+len("X-000")) + headerOverhead
		if want := 1000 + count*perHeader; w.timers.loadedBytes != want || w.flights.bytes != before+want+want/4 {
			t.Errorf("%d bytes are loaded, and the lane uses %d more; want %d, and a quarter more", w.timers.loadedBytes,
				w.flights.bytes-before, want)
		}
	}
	w.unload(f)
	if w.timers.loadedBytes != 0 || w.flights.bytes != before {
		t.Errorf("after unload, %d bytes are loaded, and the lane uses %d more; want 0", w.timers.loadedBytes,
			w.flights.bytes-before)
	}
}
