package history

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/linear"
)

// recurring returns the history of raced, with two series of three rounds each in addition. The first series is
// complete, and has an extra firing. In the second series, round 2 is moved, and then the series is cancelled.
func recurring() []Event {
	events := raced()
	second := int64(time.Second)
	begin := start + 500*ms
	op := func(at int64, key string, sequence uint64, o TimerOp) {
		e := Event{At: at + 2*ms, Op: Timer, ID: key, Target: "orders.timers", Sequence: sequence, Timer: &o}
		if o.Call = at; o.Body != "" {
			e.Sum = "sum-" + o.Body
		}
		if o.Kind == linear.Move {
			e.Delay = 30 * time.Millisecond
		}
		events = append(events, e)
	}
	count := uint64(200)
	arrives := func(body string, series uint64, round int, generation uint64, set, due int64) {
		count++
		accepted := begin + ms
		if round == 0 {
			accepted = set
		}
		e := Event{
			Op: Stored, ID: body, Subject: "orders.timers", Sum: "sum-" + body, Stored: due + ms, Accepted: accepted, Due: due,
			Sequence: count, Round: round, Series: series,
			DelayID: message.ID{Stream: "DELAY_TIMERS", Sequence: generation, At: time.Unix(0, set)}.String(),
		}
		events = store(events, e)
	}
	every := TimerOp{Kind: linear.Set, Result: linear.Done, Every: time.Second, Rounds: 3}
	for key, g := range map[string]uint64{"t0-3": 10, "t0-4": 20} {
		every.Body = key + ".0"
		op(begin, key, g, every)
	}
	due := func(round int64) int64 { return begin + ms + round*second }
	op(begin+300*ms, "t0-3", 0, TimerOp{Kind: ExtraFiring, Expects: linear.AnyPending, Result: linear.Done})
	arrives("t0-3.0", 0, 0, 11, begin+301*ms, begin+301*ms)
	arrives("t0-3.0", 10, 1, 10, begin+ms, due(1))
	arrives("t0-3.0", 10, 2, 12, due(1), due(2))
	arrives("t0-3.0", 10, 3, 13, due(2), due(3))
	arrives("t0-4.0", 20, 1, 20, begin+ms, due(1))
	op(due(1)+100*ms, "t0-4", 22, TimerOp{Kind: linear.Move, Expects: linear.AnyPending, Result: linear.Done})
	arrives("t0-4.0", 20, 2, 22, due(1)+101*ms, due(1)+131*ms)
	op(due(2), "t0-4", 24, TimerOp{Kind: linear.Cancel, Expects: linear.AnyPending, Result: linear.Done})
	return events
}

// TestSeriesRaced: the judge finds no violation in the history of recurring, and notices each mutation. A round after a
// change of the table may be due off the old table. A resumption that changes nothing is no set.
func TestSeriesRaced(t *testing.T) {
	t.Parallel()
	r := Check(recurring())
	want := Timers{Keys: 5, Delivered: 8, Cancelled: 2, TooLate: 1, Unknown: 1, Rounds: 5, Changed: 1}
	if len(r.Violations) > 0 || r.Timers != want {
		t.Fatalf("counted %+v, want %+v: %v", r.Timers, want, r.Violations)
	}
	is := func(body string, round int) func(Event) bool {
		return func(e Event) bool { return e.Op == Stored && e.ID == body && e.Round == round }
	}
	drop := func(body string, round int) func([]Event) []Event {
		return func(e []Event) []Event {
			i := slices.IndexFunc(e, is(body, round))
			id := e[i].DelayID
			return slices.DeleteFunc(e, func(e Event) bool { return e.DelayID == id })
		}
	}
	change := func(body string, round int, change func(*Event)) func([]Event) []Event {
		return func(e []Event) []Event {
			for i := range e {
				if is(body, round)(e[i]) {
					change(&e[i])
				}
			}
			return e
		}
	}
	early := change("t0-3.0", 3, func(e *Event) { e.Due -= int64(time.Second); e.Stored, e.At = e.Due+ms, e.Due+ms })
	retimed := func(e []Event) []Event {
		return append(early(e), Event{At: start, Op: Timer, ID: "t0-3", Target: "orders.timers", Sequence: 13,
			Timer: &TimerOp{Kind: linear.Retime, Expects: linear.AnyPending, Result: linear.Unknown, Call: start}})
	}
	dueElsewhere := func(v Violation) bool { return v.Kind == WrongDue }
	if r := Check(retimed(recurring())); slices.ContainsFunc(r.Violations, dueElsewhere) {
		t.Errorf("a round after a change of the table is judged by the old table: %v", r.Violations)
	}
	resumed := append(recurring(), Event{At: start + 900*ms, Op: Timer, ID: "t0-3", Target: "orders.timers", Sequence: 10,
		Timer: &TimerOp{Kind: linear.Move, Expects: linear.AnyPending, Result: linear.Done, Call: start + 899*ms}})
	if r := Check(resumed); slices.ContainsFunc(r.Violations, dueElsewhere) {
		t.Errorf("a resumption that changed nothing is judged as the set of its series: %v", r.Violations)
	}
	checkNoticed(t, recurring, map[string]mutation{
		"the first round does not arrive":                {drop("t0-3.0", 1), NoOrder},
		"the last round arrives at another round's time": {early, WrongDue},
		"the second round does not arrive":               {drop("t0-3.0", 2), NoOrder},
		"the last round does not arrive":                 {drop("t0-3.0", 3), NoOrder},
		"the extra firing does not arrive":               {drop("t0-3.0", 0), Lost},
		"an extra firing arrives without a request": {remover(func(e Event) bool {
			return e.Timer != nil && e.Timer.Kind == ExtraFiring
		}), Unexpected},
		"a round arrives again under another id": {copier(is("t0-3.0", 2), func(e *Event) {
			e.Sequence = 300
			e.DelayID = message.ID{Stream: "DELAY_TIMERS", Sequence: 14, At: time.Unix(0, e.Due)}.String()
		}), NoOrder},
		"a round of the cancelled series arrives": {copier(is("t0-4.0", 2), func(e *Event) {
			e.Sequence, e.Round, e.Due = 300, 3, e.Accepted+3*int64(time.Second)
			e.Stored = e.Due
			e.DelayID = message.ID{Stream: "DELAY_TIMERS", Sequence: 23, At: time.Unix(0, e.Due-ms)}.String()
		}), NoOrder},
		"early":                           {change("t0-3.0", 2, func(e *Event) { e.Stored = e.Due - 1 }), Early},
		"due off the table":               {change("t0-3.0", 2, func(e *Event) { e.Due += ms }), WrongDue},
		"due a round too soon":            {change("t0-3.0", 3, func(e *Event) { e.Due -= int64(time.Second) }), WrongDue},
		"due before the time of the move": {change("t0-4.0", 2, func(e *Event) { e.Due -= 20 * ms }), WrongDue},
		"accepted at another time":        {change("t0-3.0", 2, func(e *Event) { e.Accepted += 1000 * ms }), WrongDue},
		"another body":                    {change("t0-3.0", 3, func(e *Event) { e.Sum = "other" }), WrongPayload},
	})
}
