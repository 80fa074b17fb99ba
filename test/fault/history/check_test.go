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
	start = 1_800_000_000_000_000_000 // the start of the run, in nanoseconds since 1970
	ms    = int64(time.Millisecond)
)

var threeServers = []string{"n1", "n2", "n3"}

// sound returns a history without violations: thirty messages of two publishers, and a fault in the middle. Two
// publishes have no answer, and one of these two messages arrives. One publish failed.
func sound() []Event {
	events := []Event{{At: start, Op: Run, Conditions: &Conditions{
		Name: "sound", Servers: threeServers, Window: time.Minute, Bound: 10 * time.Second, Rate: 10, MinPublishes: 5,
		Clean: true,
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
	for _, e := range stored {
		events = store(events, e)
	}
	for _, server := range threeServers {
		events = append(events, Event{Op: Read, Server: server})
	}
	return append(events, Event{Op: Rest, Stream: "DELAY_1s"})
}

// store adds the events of a message that arrives on every server: a witness receives the message, and the target's
// stream stores it.
func store(events []Event, e Event) []Event {
	for _, server := range threeServers {
		e.At, e.Server = e.Stored, server
		seen := Event{At: e.At, Op: Seen, ID: e.ID, Subject: e.Subject, Server: server, DelayID: e.DelayID}
		events = append(events, seen, e)
	}
	return events
}

// TestSound: the judge finds no violation in a sound history, also after the history was written and read again.
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
		t.Error("the events that were read differ from the events that were written")
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

// edit changes every event of one op that belongs to one message.
func edit(events []Event, op Op, id string, change func(*Event)) {
	for i := range events {
		if events[i].Op == op && events[i].ID == id {
			change(&events[i])
		}
	}
}

func changer(op Op, id string, change func(*Event)) func([]Event) []Event {
	return func(events []Event) []Event {
		edit(events, op, id, change)
		return events
	}
}

// copier returns a function that adds changed copies of some events.
func copier(original func(Event) bool, change func(*Event)) func([]Event) []Event {
	return func(events []Event) []Event {
		for _, e := range slices.Clone(events) {
			if original(e) {
				change(&e)
				events = append(events, e)
			}
		}
		return events
	}
}

func remover(match func(Event) bool) func([]Event) []Event {
	return func(events []Event) []Event { return slices.DeleteFunc(events, match) }
}

// arrived matches the events that show a message at its target.
func arrived(id string) func(Event) bool {
	return func(e Event) bool { return e.ID == id && (e.Op == Stored || e.Op == Seen) }
}

// storeAgain adds a copy of a message to the target's stream, on every server, at a later time.
func storeAgain(events []Event, id string, later time.Duration) []Event {
	add := copier(storedAs(id), func(e *Event) { e.Sequence, e.Stored = 100, e.Stored+int64(later) })
	return add(events)
}

// storedAs matches the events that show a message in the target's stream.
func storedAs(id string) func(Event) bool {
	return func(e Event) bool { return e.Op == Stored && e.ID == id }
}

// coreOnly turns a message into a message to core subscribers, which the witnesses saw and no stream has.
func coreOnly(events []Event, id string) []Event {
	events = slices.DeleteFunc(events, storedAs(id))
	edit(events, Publish, id, func(e *Event) { e.Core = e.Phase == Invoke })
	return events
}

// TestCore: a message to core subscribers counts as delivered if a witness saw it.
func TestCore(t *testing.T) {
	if r := Check(coreOnly(sound(), "p0-5")); len(r.Violations) > 0 || r.Delivered != 28 {
		t.Errorf("%d delivered, want 28: %v", r.Delivered, r.Violations)
	}
}

// A mutation changes a sound history. The judge must then find a violation of the kind want.
type mutation struct {
	change func([]Event) []Event
	want   Kind
}

// checkNoticed expects that the judge finds, for each mutation of a sound history, a violation of the mutation's kind.
func checkNoticed(t *testing.T, sound func() []Event, mutations map[string]mutation) {
	t.Helper()
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			if r := Check(m.change(sound())); r.Count(m.want) == 0 {
				t.Errorf("not noticed as %q: %v", m.want, r.Violations)
			}
		})
	}
}

// mutants are mutations of the history that sound returns.
var mutants = map[string]mutation{
	"the first delivery is missing":     {remover(arrived("p0-0")), Lost},
	"a delivery is missing":             {remover(arrived("p1-6")), Lost},
	"the last delivery is missing":      {remover(arrived("p1-14")), Lost},
	"a message was seen and not stored": {remover(storedAs("p0-5")), Lost},
	"one server lacks a message": {remover(func(e Event) bool {
		return e.ID == "p0-5" && e.Server == "n2" && e.Op == Stored
	}), LostOnServer},
	"one server has another timestamp": {changer(Stored, "p0-5", func(e *Event) {
		if e.Server == "n3" {
			e.Stored++
		}
	}), LostOnServer},
	"a message is early by a nanosecond": {changer(Stored, "p0-5", func(e *Event) { e.Stored-- }),
		Early},
	"a message for a requested time is early by a nanosecond": {changer(Stored, "p0-2", func(e *Event) { e.Stored-- }),
		Early},
	"due and arrival were rounded down": {changer(Stored, "p0-5", func(e *Event) {
		e.Due--
		e.Stored--
	}), Early},
	"due was rounded up": {changer(Stored, "p0-5", func(e *Event) {
		e.Due += ms
		e.Stored += ms
	}), WrongDue},
	"accepted before the publish": {changer(Stored, "p0-5", func(e *Event) {
		e.Accepted -= 3 * ms
		e.Due -= 3 * ms
		e.DelayID = message.ID{Stream: "DELAY_1s", Sequence: 11, At: time.Unix(0, e.Accepted)}.String()
	}), WrongDue},
	"a copy within the window": {func(e []Event) []Event { return storeAgain(e, "p0-5", time.Minute) }, Duplicate},
	"seen twice": {func(e []Event) []Event {
		return append(e, Event{Op: Seen, ID: "p0-5", Subject: "orders.a", Server: "n1"})
	}, Repeated},
	"stored and never published": {changer(Stored, "p0-5", func(e *Event) { e.ID = "p7-1" }), Unexpected},
	"seen and never published": {func(e []Event) []Event {
		return append(e, Event{Op: Seen, ID: "p7-1", Subject: "orders.a", Server: "n1"})
	}, Unexpected},
	"its publish failed": {changer(Publish, "p1-3", func(e *Event) {
		if e.Phase == Unknown {
			e.Phase = Fail
		}
	}), Unexpected},
	"another payload": {changer(Stored, "p0-5", func(e *Event) { e.Sum = "sum-p0-6" }), WrongPayload},
	"another target":  {changer(Stored, "p0-5", func(e *Event) { e.Subject = "orders.b" }), WrongTarget},
	"another's Delay-Id": {func(e []Event) []Event {
		var other Event
		edit(e, Stored, "p0-6", func(e *Event) { other = *e })
		edit(e, Stored, "p0-5", func(e *Event) { e.DelayID = other.DelayID })
		return e
	}, WrongID},
	"a Delay-Id that is none": {changer(Stored, "p0-5", func(e *Event) { e.DelayID = "" }), WrongID},
	"the copy has another Delay-Id": {func(e []Event) []Event {
		e = storeAgain(e, "p0-5", time.Hour)
		edit(e, Stored, "p0-5", func(e *Event) {
			if e.Sequence == 100 {
				e.DelayID = message.ID{Stream: "DELAY_1s", Sequence: 99, At: time.Unix(0, e.Accepted)}.String()
			}
		})
		return e
	}, WrongID},
	"a dead letter": {func(e []Event) []Event {
		return append(e, Event{Op: Dead, ID: "p0-5", Text: "bad_time"})
	}, DeadLetter},
	"late beyond the bound": {changer(Stored, "p1-14", func(e *Event) { e.Stored += int64(11 * time.Second) }), TooLate},
	"a lane is not empty": {func(e []Event) []Event {
		e[len(e)-1].Count = 1
		return e
	}, LeftBehind},
	"one server was not read":  {remover(func(e Event) bool { return e.Op == Read && e.Server == "n2" }), Incomplete},
	"nothing proves the fault": {remover(func(e Event) bool { return e.Op == Fault && e.Phase == OK }), Incomplete},
	"the fault did not end":    {remover(func(e Event) bool { return e.Op == Fault && e.Phase == Healed }), Incomplete},
	"too few publishes after the fault": {func(e []Event) []Event {
		return slices.DeleteFunc(e, func(e Event) bool {
			return e.Op == Publish && e.At > start+2300*ms ||
				e.Op != Publish && e.Stored > start+3300*ms
		})
	}, Incomplete},
	"sent twice long after the last fault": {func(e []Event) []Event {
		e[0].Conditions.Clean = false
		for i := range e {
			if e[i].Op == Fault { // the fault was earlier
				e[i].At -= int64(20 * time.Second)
			}
		}
		return append(e, Event{Op: Seen, ID: "p0-14", Subject: "orders.a", Server: "n1"})
	}, Settled},
	"core subscribers did not receive a message": {func(e []Event) []Event {
		e = slices.DeleteFunc(e, arrived("p0-5"))
		edit(e, Publish, "p0-5", func(e *Event) { e.Core = e.Phase == Invoke })
		return e
	}, Lost},
	"core subscribers received a message early": {func(e []Event) []Event {
		e = coreOnly(e, "p0-5")
		edit(e, Seen, "p0-5", func(e *Event) { e.At -= 2 * ms })
		return e
	}, Early},
	"core subscribers received a message late": {func(e []Event) []Event {
		e = coreOnly(e, "p0-5")
		edit(e, Publish, "p0-5", func(e *Event) { e.Within = 2 * time.Second })
		edit(e, Seen, "p0-5", func(e *Event) { e.At += int64(3 * time.Second) })
		return e
	}, TooLate},
	"a broker was ready late": {func(e []Event) []Event {
		e[0].Conditions.Ready = time.Second
		return append(e, Event{Op: Ready, Text: "b1", Delay: time.Second + 1})
	}, TooSlow},
	"a message is late in a run with a low bound": {func(e []Event) []Event {
		e[0].Conditions.Late = 2 * time.Second
		edit(e, Stored, "p0-5", func(e *Event) { e.Stored += 2*int64(time.Second) + 1 })
		return e
	}, TooLate},
	"the run recorded a violation": {func(e []Event) []Event { return append(e, Event{Op: Broken, Text: "two owners"}) },
		NotKept},
	"it has no beginning": {func(e []Event) []Event { return e[1:] }, Incomplete},
	"it is empty":         {func([]Event) []Event { return nil }, Incomplete},
}

// TestMutants: the judge notices each mutation.
func TestMutants(t *testing.T) {
	checkNoticed(t, sound, mutants)
}

// TestExcused: excused duplicates and excused lateness are no violations. The judge only counts a copy beyond the
// duplicate window, and a second delivery in a run whose faults excuse duplicates. Lateness counts from the end of a
// fault.
func TestExcused(t *testing.T) {
	events := storeAgain(sound(), "p0-5", time.Minute+1)
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
	edit(events, Stored, "p0-5", func(e *Event) { e.Stored = healed + int64(10*time.Second) })
	if r := Check(events); len(r.Violations) > 0 {
		t.Errorf("a message that arrives exactly the bound after the fault counts as too late: %v", r.Violations)
	}
}
