package history

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
)

const (
	start = 1_800_000_000_000_000_000 // of the run
	ms    = int64(time.Millisecond)
)

var threeServers = []string{"n1", "n2", "n3"}

// sound is a history in which all went well: thirty messages of two publishers, two of them unknown of which one was
// stored, one that failed, and a fault in the middle.
func sound() []Event {
	events := []Event{{At: start, Op: Run, Conditions: &Conditions{
		Name: "sound", Servers: threeServers, Window: time.Minute, Bound: 10 * time.Second, Rate: 10, Least: 5, Clean: true,
	}}}
	var stored []Event
	for n := range 30 {
		at := start + int64(n)*100*ms
		switch n {
		case 10:
			events = append(events, Event{At: at, Op: Fault, Phase: Invoke, Text: "power cut"})
		case 19:
			events = append(events, Event{At: at, Op: Fault, Phase: OK, Text: "it was dark"},
				Event{At: at, Op: Fault, Phase: Healed})
		}
		id := fmt.Sprintf("p%d-%d", n%2, n/2)
		publish := Event{
			At: at, Op: Publish, Phase: Invoke, ID: id, Subject: "delay.1s.orders.a", Target: "orders.a", Delay: time.Second,
			Sum: "sum-" + id,
		}
		answer := Event{At: at + 2*ms, Op: Publish, Phase: OK, ID: id, Stream: "DELAY_1s", Sequence: uint64(n + 1)}
		switch n {
		case 4:
			publish.Delay, publish.Until, publish.Subject = 0, at+500*ms, "delayat.1800000000900.orders.a"
		case 7, 8:
			answer.Phase = Unknown
		case 9:
			answer.Phase = Fail
		}
		events = append(events, publish, answer)
		if n == 8 || n == 9 {
			continue
		}
		accepted := at + ms
		due := accepted + int64(publish.Delay)
		if publish.Until != 0 {
			due = publish.Until
		}
		stored = append(stored, Event{
			Op: Stored, ID: id, Subject: "orders.a", Sum: publish.Sum, Stored: due, Accepted: accepted, Due: due,
			Sequence: uint64(len(stored) + 1),
			DelayID:  message.ID{Stream: "DELAY_1s", Sequence: uint64(n + 1), At: time.Unix(0, accepted)}.String(),
		})
	}
	for _, server := range threeServers {
		for _, e := range stored {
			e.At, e.Server = e.Stored, server
			events = append(events, Event{At: e.Stored, Op: Seen, ID: e.ID, Subject: e.Subject, Server: server}, e)
		}
		events = append(events, Event{Op: Read, Server: server})
	}
	return append(events, Event{Op: Rest, Stream: "DELAY_1s"})
}

// TestSound: a history in which all went well has nothing to say against it, also after it was written and read again.
func TestSound(t *testing.T) {
	var file bytes.Buffer
	if err := Write(&file, sound()); err != nil {
		t.Fatal(err)
	}
	read, err := Parse(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, sound()) {
		t.Error("what was read is not what was written")
	}
	r := Check(read)
	for _, v := range r.Violations {
		t.Errorf("a sound history: %s", v)
	}
	want := [...]int{30, 27, 1, 28, 1, 0, 0, 0}
	if got := [...]int{r.Attempted, r.Acked, r.Failed, r.Delivered, r.Recovered, r.Lost, r.Repeats,
		r.Copies}; got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// of changes every event of a kind that belongs to one message.
func of(events []Event, op Op, id string, change func(*Event)) {
	for i := range events {
		if events[i].Op == op && events[i].ID == id {
			change(&events[i])
		}
	}
}

// without removes events.
func without(events []Event, remove func(Event) bool) []Event {
	return slices.DeleteFunc(events, remove)
}

// arrived reports whether an event shows a message at its target.
func arrived(id string) func(Event) bool {
	return func(e Event) bool { return e.ID == id && (e.Op == Stored || e.Op == Seen) }
}

// again adds a copy of a message in the target's stream, on every server, so much later.
func again(events []Event, id string, later time.Duration) []Event {
	for _, e := range slices.Clone(events) {
		if e.Op == Stored && e.ID == id {
			e.Sequence, e.Stored = 100, e.Stored+int64(later)
			events = append(events, e)
		}
	}
	return events
}

// coreOnly makes a message one to core subscribers: seen, and in no stream.
func coreOnly(events []Event, id string) []Event {
	events = without(events, func(e Event) bool { return e.ID == id && e.Op == Stored })
	of(events, Publish, id, func(e *Event) { e.Core = e.Phase == Invoke })
	return events
}

// TestCore: a message that core subscribers saw has arrived.
func TestCore(t *testing.T) {
	if r := Check(coreOnly(sound(), "p0-5")); len(r.Violations) > 0 || r.Delivered != 28 {
		t.Errorf("%d delivered, want 28: %v", r.Delivered, r.Violations)
	}
}

// mutants are changes of a sound history, and the kind of violation that each must be found as.
var mutants = []struct {
	name   string
	change func([]Event) []Event
	want   Kind
}{
	{"the first delivery is missing", func(e []Event) []Event { return without(e, arrived("p0-0")) }, Lost},
	{"a delivery is missing", func(e []Event) []Event { return without(e, arrived("p1-6")) }, Lost},
	{"the last delivery is missing", func(e []Event) []Event { return without(e, arrived("p1-14")) }, Lost},
	{"it was seen and not stored", func(e []Event) []Event {
		return without(e, func(e Event) bool { return e.ID == "p0-5" && e.Op == Stored })
	}, Lost},
	{"one server lacks one", func(e []Event) []Event {
		return without(e, func(e Event) bool { return e.ID == "p0-5" && e.Server == "n2" && e.Op == Stored })
	}, LostOnServer},
	{"one server has another time", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) {
			if e.Server == "n3" {
				e.Stored++
			}
		})
		return e
	}, LostOnServer},
	{"one is early by a nanosecond", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.Stored-- })
		return e
	}, Early},
	{"one for a given time is early by a nanosecond", func(e []Event) []Event {
		of(e, Stored, "p0-2", func(e *Event) { e.Stored-- })
		return e
	}, Early},
	{"due was rounded down, and kept", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.Due--; e.Stored-- })
		return e
	}, Early},
	{"due was rounded up", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.Due += ms; e.Stored += ms })
		return e
	}, WrongDue},
	{"it says that it was accepted before it was published", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) {
			e.Accepted -= 3 * ms
			e.Due -= 3 * ms
			e.DelayID = message.ID{Stream: "DELAY_1s", Sequence: 11, At: time.Unix(0, e.Accepted)}.String()
		})
		return e
	}, WrongDue},
	{"a copy within the window", func(e []Event) []Event { return again(e, "p0-5", time.Minute) }, Duplicate},
	{"seen twice", func(e []Event) []Event {
		return append(e, Event{Op: Seen, ID: "p0-5", Subject: "orders.a", Server: "n1"})
	}, Repeated},
	{"stored and never published", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.ID = "p7-1" })
		return e
	}, Unexpected},
	{"seen and never published", func(e []Event) []Event {
		return append(e, Event{Op: Seen, ID: "p7-1", Subject: "orders.a", Server: "n1"})
	}, Unexpected},
	{"its publish failed", func(e []Event) []Event {
		of(e, Publish, "p1-3", func(e *Event) {
			if e.Phase == Unknown {
				e.Phase = Fail
			}
		})
		return e
	}, Unexpected},
	{"another payload", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.Sum = "sum-p0-6" })
		return e
	}, WrongPayload},
	{"another target", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.Subject = "orders.b" })
		return e
	}, WrongTarget},
	{"another's Delay-Id", func(e []Event) []Event {
		var other Event
		of(e, Stored, "p0-6", func(e *Event) { other = *e })
		of(e, Stored, "p0-5", func(e *Event) { e.DelayID = other.DelayID })
		return e
	}, WrongID},
	{"a Delay-Id that is none", func(e []Event) []Event {
		of(e, Stored, "p0-5", func(e *Event) { e.DelayID = "" })
		return e
	}, WrongID},
	{"the copy has another Delay-Id", func(e []Event) []Event {
		e = again(e, "p0-5", time.Hour)
		of(e, Stored, "p0-5", func(e *Event) {
			if e.Sequence == 100 {
				e.DelayID = message.ID{Stream: "DELAY_1s", Sequence: 99, At: time.Unix(0, e.Accepted)}.String()
			}
		})
		return e
	}, WrongID},
	{"a dead letter", func(e []Event) []Event {
		return append(e, Event{Op: Dead, ID: "p0-5", Text: "bad_time"})
	}, DeadLetter},
	{"late beyond the bound", func(e []Event) []Event {
		of(e, Stored, "p1-14", func(e *Event) { e.Stored += int64(11 * time.Second) })
		return e
	}, TooLate},
	{"a lane is not empty", func(e []Event) []Event {
		e[len(e)-1].Count = 1
		return e
	}, LeftBehind},
	{"one server was not read", func(e []Event) []Event {
		return without(e, func(e Event) bool { return e.Op == Read && e.Server == "n2" })
	}, Incomplete},
	{"nothing proves the fault", func(e []Event) []Event {
		return without(e, func(e Event) bool { return e.Op == Fault && e.Phase == OK })
	}, Incomplete},
	{"the fault did not end", func(e []Event) []Event {
		return without(e, func(e Event) bool { return e.Op == Fault && e.Phase == Healed })
	}, Incomplete},
	{"too little was published after the fault", func(e []Event) []Event {
		return without(e, func(e Event) bool {
			return e.Op == Publish && e.At > start+2300*ms ||
				e.Op != Publish && e.ID != "" && e.Accepted+e.At > 0 && e.Stored > start+3300*ms
		})
	}, Incomplete},
	{"sent twice long after the last fault", func(e []Event) []Event {
		e[0].Conditions.Clean = false
		for i := range e {
			if e[i].Op == Fault { // as if it had been earlier
				e[i].At -= int64(20 * time.Second)
			}
		}
		return append(e, Event{Op: Seen, ID: "p0-14", Subject: "orders.a", Server: "n1"})
	}, Settled},
	{"core subscribers did not see it", func(e []Event) []Event {
		e = without(e, arrived("p0-5"))
		of(e, Publish, "p0-5", func(e *Event) { e.Core = e.Phase == Invoke })
		return e
	}, Lost},
	{"core subscribers saw it early", func(e []Event) []Event {
		e = coreOnly(e, "p0-5")
		of(e, Seen, "p0-5", func(e *Event) { e.At -= 2 * ms })
		return e
	}, Early},
	{"core subscribers saw it late", func(e []Event) []Event {
		e = coreOnly(e, "p0-5")
		of(e, Publish, "p0-5", func(e *Event) { e.Within = 2 * time.Second })
		of(e, Seen, "p0-5", func(e *Event) { e.At += int64(3 * time.Second) })
		return e
	}, TooLate},
	{"a broker was ready late", func(e []Event) []Event {
		e[0].Conditions.Ready = time.Second
		return append(e, Event{Op: Ready, Text: "b1", Delay: time.Second + 1})
	}, TooSlow},
	{"one is late in a run that allows for little", func(e []Event) []Event {
		e[0].Conditions.Late = 2 * time.Second
		of(e, Stored, "p0-5", func(e *Event) { e.Stored += 2*int64(time.Second) + 1 })
		return e
	}, TooLate},
	{"the run saw a promise broken", func(e []Event) []Event { return append(e, Event{Op: Broken, Text: "two owners"}) },
		NotKept},
	{"it has no beginning", func(e []Event) []Event { return e[1:] }, Incomplete},
	{"it is empty", func([]Event) []Event { return nil }, Incomplete},
}

// TestMutants: every error of a history is noticed, under its own kind.
func TestMutants(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			if r := Check(mutant.change(sound())); r.Count(mutant.want) == 0 {
				t.Errorf("not noticed as %q: %v", mutant.want, r.Violations)
			}
		})
	}
}

// TestExcused: what is no broken promise is none. A copy beyond the window is counted; copies that are only sent are,
// in runs that excuse them; lateness is counted from the end of a fault.
func TestExcused(t *testing.T) {
	events := again(sound(), "p0-5", time.Minute+1)
	of(events, Stored, "p0-5", func(e *Event) { e.At = e.Stored })
	events[0].Conditions.Clean = false
	events[0].Conditions.Bound = time.Hour
	events = append(events, Event{Op: Seen, ID: "p0-5", Subject: "orders.a", Server: "n1"})
	r := Check(events)
	for _, v := range r.Violations {
		t.Errorf("not excused: %s", v)
	}
	if r.Copies != 1 || r.Repeats != 1 {
		t.Errorf("counted %d copies stored and %d sent, want 1 and 1", r.Copies, r.Repeats)
	}

	events = sound()
	healed := start + 1900*ms
	of(events, Stored, "p0-5", func(e *Event) { e.Stored = healed + int64(10*time.Second) })
	if r := Check(events); len(r.Violations) > 0 {
		t.Errorf("late by the bound, counted from the end of the fault: %v", r.Violations)
	}
}
