package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// A Verb is what a load does to named timers, or to the server's schedules.
type Verb string

// The verbs of a load.
const (
	Set     Verb = "set"
	Cancel  Verb = "cancel"  // by an entry that the client publishes; a schedule is deleted
	Request Verb = "request" // a cancel that the broker is asked for
	Move    Verb = "move"
)

const (
	// requests is how many requests about single timers a broker takes at a time: further ones are refused as busy.
	requests = 64
	// postponed is how much later than the rest those timers are due at first that are moved to the same instant.
	postponed = time.Hour
)

// A Change is what a load does to named timers.
type Change struct {
	Verb Verb `json:"verb,omitempty"`
	// Step is how much later each timer is due than the one before it; Load.Due is that of the first.
	Step time.Duration `json:"step,omitempty"`
	Cron string        `json:"cron,omitempty"` // of timers that recur; empty for others
	// Postponed timers are set first, for a later time: they will be moved.
	Postponed int `json:"postponed,omitempty"`
	// Sequences are those of the sets that a cancel, request or move expects, in the order of the messages.
	Sequences []uint64 `json:"sequences,omitempty"`
	API       string   `json:"api,omitempty"` // prefix of JetStream's API
}

// doing says what a load does, for people.
func (l Load) doing() string {
	return cmp.Or(map[Verb]string{
		Set: "setting timers", Cancel: "cancelling timers", Request: "having the broker cancel timers",
		Move: "moving timers",
	}[l.Verb], "publishing")
}

// window bounds the messages without an answer.
func (l Load) window() int {
	if l.Verb == Request {
		return requests
	}
	return outstanding
}

// change makes the message for one timer. The turn is part of its key: each turn has timers of its own.
func (l Load) change(n Names, number int) *nats.Msg {
	i, key, target := number-l.First, fmt.Sprintf("%d-%d", l.Turn, number), number%l.Targets
	m := &nats.Msg{Subject: n.timer(l.Side, key, target), Header: nats.Header{}}
	due := l.Due.Add(time.Duration(i) * l.Step)
	switch l.Verb {
	case Cancel, Request:
		return l.cancel(n, m, key, target, l.Sequences[i])
	case Move:
		m.Header.Set(message.HeaderExpected, strconv.FormatUint(l.Sequences[i], 10))
	default:
		if number < l.Postponed {
			due = due.Add(postponed)
		}
	}
	when := due.UTC().Format(time.RFC3339Nano)
	switch {
	case l.Side == Scheduler:
		m.Header.Set("Nats-Schedule", cmp.Or(l.Cron, "@at "+when))
		m.Header.Set("Nats-Schedule-Target", n.fired(target))
	case l.Cron != "":
		m.Header.Set(message.HeaderCron, l.Cron)
	default:
		m.Header.Set(message.HeaderUntil, when)
	}
	m.Data = Stamp{Turn: l.Turn, Number: uint32(number), Due: due}.Payload(l.Size)
	return m
}

// cancel cancels what was set under a sequence.
func (l Load) cancel(n Names, m *nats.Msg, key string, target int, sequence uint64) *nats.Msg {
	switch {
	case l.Side == Scheduler:
		m.Subject = l.API + ".STREAM.MSG.DELETE." + n.ScheduleStream()
		m.Header, m.Data = nil, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, sequence)
	case l.Verb == Request:
		m.Subject = n.broker.TimerCall("cancel") + key + "." + n.Target(target)
		m.Header, m.Data = nil, fmt.Appendf(nil, `{"generation":%d}`, sequence)
	default:
		m.Header = nats.Header(entry.CancelHeader(sequence, "bench"))
	}
	return m
}

// accepted reads the answer to a message of the load: why it was not carried out, or the sequence of what was stored.
func (l Load) accepted(m *nats.Msg) (sequence uint64, err error) {
	if l.Verb == Request || l.Verb == Cancel && l.Side == Scheduler {
		var done struct {
			Outcome string // of the broker
			Success bool   // of the server
		}
		err := json.Unmarshal(m.Data, &done)
		if err != nil || !done.Success && done.Outcome != "cancelled" {
			return 0, fmt.Errorf("a cancel is answered with %.200q%.100q",
				m.Header.Get("Nats-Service-Error"), m.Data)
		}
		return 0, nil
	}
	return acknowledged(m)
}

// acknowledged is the sequence under which a stream has stored a message, or why it has not.
func acknowledged(m *nats.Msg) (sequence uint64, err error) {
	switch ack, ok := jsapi.ParseAck(m); {
	case !ok:
		return 0, fmt.Errorf("no acknowledgement: %.100q (status %q)", m.Data, m.Header.Get("Status"))
	case ack.Refused():
		return 0, fmt.Errorf("%s (%d)", ack.Description, ack.Code)
	default:
		return ack.Sequence, nil
	}
}
