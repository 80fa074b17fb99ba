package history

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/linear"
)

// raced is a sound history with three timers besides: one was moved once, by a request that was not answered; one was
// cancelled; for one it was too late.
func raced() []Event {
	events := sound()
	events[0].Conditions.Players = 1
	at := start + 200*ms
	op := func(key string, kind linear.Kind, is linear.Result, expects int64, sequence uint64, body string) {
		at += 10 * ms
		events = append(events, Event{
			At: at + 2*ms, Op: Timer, ID: key, Target: "orders.timers", Delay: time.Second, Sum: "sum-" + body,
			Sequence: sequence, Timer: &TimerOp{Kind: kind, Expects: expects, Result: is, Call: at, Body: body},
		})
	}
	count := uint64(100)
	arrives := func(body string, generation uint64) {
		accepted := at + ms
		due := accepted + int64(time.Second)
		count++
		e := Event{
			Op: Stored, ID: body, Subject: "orders.timers", Sum: "sum-" + body, Stored: due + ms, Accepted: accepted, Due: due,
			Sequence: count,
			DelayID:  message.ID{Stream: "DELAY_TIMERS", Sequence: generation, At: time.Unix(0, accepted)}.String(),
		}
		for _, server := range threeServers {
			e.At, e.Server = e.Stored, server
			seen := Event{At: e.At, Op: Seen, ID: e.ID, Subject: e.Subject, Server: server, DelayID: e.DelayID}
			events = append(events, seen, e)
		}
	}
	op("t0-0", linear.Set, linear.Done, 0, 1, "t0-0.0")
	op("t0-0", linear.Set, linear.Unknown, 1, 0, "t0-0.1")
	arrives("t0-0.1", 2)
	op("t0-1", linear.Set, linear.Done, 0, 3, "t0-1.0")
	op("t0-1", linear.Cancel, linear.Done, 3, 4, "")
	op("t0-2", linear.Set, linear.Done, 0, 5, "t0-2.0")
	arrives("t0-2.0", 5)
	at += 1100 * ms
	op("t0-2", linear.Cancel, linear.Refused, 5, 0, "")
	return events
}

// TestTimersRaced: there is nothing to say against the sound history, and each error is noticed under its own kind.
func TestTimersRaced(t *testing.T) {
	r := Check(raced())
	want := Timers{Keys: 3, Delivered: 2, Cancelled: 1, TooLate: 1, Unknown: 1}
	if len(r.Violations) > 0 || r.Timers != want {
		t.Fatalf("counted %+v, want %+v: %v", r.Timers, want, r.Violations)
	}
	overtaken := func(expects int64) []Event {
		e := without(raced(), func(e Event) bool { return e.Op == Stored && e.ID == "t0-2.0" })
		return append(e, Event{
			At: e[len(e)-1].At + 2*ms, Op: Timer, ID: "t0-2", Target: "orders.timers", Delay: time.Second, Sum: "sum-t0-2.1",
			Sequence: 6, Timer: &TimerOp{
				Kind: linear.Set, Expects: expects, Result: linear.Done, Call: e[len(e)-1].At + ms, Body: "t0-2.1",
			},
		})
	}
	for _, expects := range []int64{-1, 5} {
		if r := Check(overtaken(expects)); r.Count(Lost) == 0 {
			t.Errorf("replaced on its way by somebody who expected %d: %v", expects, r.Violations)
		}
	}
	for name, tt := range map[string]struct {
		change func([]Event) []Event
		want   Kind
	}{
		"the one too late does not come": {func(e []Event) []Event { return without(e, arrived("t0-2.0")) }, NoOrder},
		"it came early": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.Stored = e.Due - 1 })
			return e
		}, Early},
		"it came with another due time": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.Due -= ms })
			return e
		}, WrongDue},
		"it came as another's body": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.ID = "t0-2.7" })
			return e
		}, WrongPayload},
		"its body is not what was set": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.Sum = "other" })
			return e
		}, WrongPayload},
		"it came elsewhere": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.Subject = "orders.other" })
			return e
		}, WrongTarget},
		"it was stored twice": {func(e []Event) []Event { return again(e, "t0-2.0", time.Second) }, Duplicate},
		"it was seen twice": {func(e []Event) []Event {
			i := slices.IndexFunc(e, func(e Event) bool { return e.Op == Seen && e.ID == "t0-2.0" })
			return append(e, e[i])
		}, Repeated},
		"it was seen and not stored": {func(e []Event) []Event {
			return without(e, func(e Event) bool { return e.Op == Stored && e.ID == "t0-2.0" })
		}, Lost},
		"it came much too late": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.Stored += int64(time.Minute) })
			return e
		}, TooLate},
		"the cancelled one comes": {func(e []Event) []Event {
			for _, s := range slices.Clone(e) {
				if s.Op == Stored && s.ID == "t0-2.0" {
					s.ID, s.Sum, s.Sequence = "t0-1.0", "sum-t0-1.0", 200
					s.DelayID = message.ID{Stream: "DELAY_TIMERS", Sequence: 3, At: time.Unix(0, s.Accepted)}.String()
					e = append(e, s)
				}
			}
			return e
		}, NoOrder},
		"what was moved comes, too": {func(e []Event) []Event {
			for _, s := range slices.Clone(e) {
				if s.Op == Stored && s.ID == "t0-0.1" {
					s.ID, s.Sum, s.Sequence = "t0-0.0", "sum-t0-0.0", 200
					s.DelayID = message.ID{Stream: "DELAY_TIMERS", Sequence: 1, At: time.Unix(0, s.Accepted)}.String()
					e = append(e, s)
				}
			}
			return e
		}, NoOrder},
		"it came from another stream": {func(e []Event) []Event {
			of(e, Stored, "t0-2.0", func(e *Event) { e.DelayID = "DELAY_INTAKE-5-1" })
			return e
		}, WrongID},
		"none was cancelled": {func(e []Event) []Event {
			return without(e, func(e Event) bool { return e.Timer != nil && e.Timer.Kind == linear.Cancel })
		}, Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			if r := Check(tt.change(raced())); r.Count(tt.want) == 0 {
				t.Errorf("not noticed as %q: %v", tt.want, r.Violations)
			}
		})
	}
}
