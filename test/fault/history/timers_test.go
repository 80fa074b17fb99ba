package history

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/linear"
)

// raced returns the sound history with three timers in addition. A request without an answer replaced the first timer,
// the second timer was cancelled, and the cancel of the third timer was too late.
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
		events = store(events, e)
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

// TestTimersRaced: the judge finds no violation in the history of raced, and notices each mutation. If a witness
// received a firing that the target's stream lacks, the message is lost, even if a client replaced the timer.
func TestTimersRaced(t *testing.T) {
	r := Check(raced())
	want := Timers{Keys: 3, Delivered: 2, Cancelled: 1, TooLate: 1, Unknown: 1}
	if len(r.Violations) > 0 || r.Timers != want {
		t.Fatalf("counted %+v, want %+v: %v", r.Timers, want, r.Violations)
	}
	overtaken := func(expects int64) []Event {
		e := slices.DeleteFunc(raced(), storedAs("t0-2.0"))
		return append(e, Event{
			At: e[len(e)-1].At + 2*ms, Op: Timer, ID: "t0-2", Target: "orders.timers", Delay: time.Second, Sum: "sum-t0-2.1",
			Sequence: 6, Timer: &TimerOp{
				Kind: linear.Set, Expects: expects, Result: linear.Done, Call: e[len(e)-1].At + ms, Body: "t0-2.1",
			},
		})
	}
	for _, expects := range []int64{-1, 5} {
		if r := Check(overtaken(expects)); r.Count(Lost) == 0 {
			t.Errorf("a timer was seen and not stored, and is not lost after a replacement with expectation %d: %v", expects,
				r.Violations)
		}
	}
	checkNoticed(t, raced, map[string]mutation{
		"the timer with the late cancel does not arrive": {remover(arrived("t0-2.0")), NoOrder},
		"a timer came early": {changer(Stored, "t0-2.0", func(e *Event) { e.Stored = e.Due - 1 }),
			Early},
		"a timer arrived with another due time": {changer(Stored, "t0-2.0", func(e *Event) { e.Due -= ms }), WrongDue},
		"a timer arrived with another body": {changer(Stored, "t0-2.0", func(e *Event) { e.ID = "t0-2.7" }),
			WrongPayload},
		"a timer arrived with another checksum": {changer(Stored, "t0-2.0", func(e *Event) { e.Sum = "other" }),
			WrongPayload},
		"a timer came elsewhere": {changer(Stored, "t0-2.0", func(e *Event) {
			e.Subject = "orders.other"
		}), WrongTarget},
		"a timer was stored twice": {func(e []Event) []Event { return storeAgain(e, "t0-2.0", time.Second) }, Duplicate},
		"a timer was seen twice": {func(e []Event) []Event {
			i := slices.IndexFunc(e, func(e Event) bool { return e.Op == Seen && e.ID == "t0-2.0" })
			return append(e, e[i])
		}, Repeated},
		"a timer was seen and not stored": {remover(storedAs("t0-2.0")), Lost},
		"a timer arrived too late": {changer(Stored, "t0-2.0", func(e *Event) {
			e.Stored += int64(time.Minute)
		}), TooLate},
		"the cancelled timer arrives": {copier(storedAs("t0-2.0"), func(e *Event) {
			e.ID, e.Sum, e.Sequence = "t0-1.0", "sum-t0-1.0", 200
			e.DelayID = message.ID{Stream: "DELAY_TIMERS", Sequence: 3, At: time.Unix(0, e.Accepted)}.String()
		}), NoOrder},
		"the replaced generation arrives, too": {copier(storedAs("t0-0.1"), func(e *Event) {
			e.ID, e.Sum, e.Sequence = "t0-0.0", "sum-t0-0.0", 200
			e.DelayID = message.ID{Stream: "DELAY_TIMERS", Sequence: 1, At: time.Unix(0, e.Accepted)}.String()
		}), NoOrder},
		"a timer arrived with the id of another stream": {changer(Stored, "t0-2.0", func(e *Event) {
			e.DelayID = "DELAY_INTAKE-5-1"
		}), WrongID},
		"none was cancelled": {remover(func(e Event) bool {
			return e.Timer != nil && e.Timer.Kind == linear.Cancel
		}), Incomplete},
	})
}
