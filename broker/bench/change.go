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

// A Verb is the operation of a load on named timers, or on the server's schedules.
type Verb string

// The verbs of a load.
const (
	Set     Verb = "set"
	Cancel  Verb = "cancel"  // an entry that the client publishes; a schedule is deleted
	Request Verb = "request" // a cancel request to the broker
	Move    Verb = "move"
)

const (
	// maxRequests is the maximum number of concurrent requests about single timers. Above it, a broker answers "busy".
	maxRequests = 64
	// postponement is the initial extra delay of timers that the load will move to the due time of the others.
	postponement = time.Hour
)

// A Change is the operation of a load on named timers.
type Change struct {
	Verb Verb `json:"verb,omitempty"`
	// Step is the time between the due times of two consecutive timers. Load.Due is the due time of the first.
	Step time.Duration `json:"step,omitempty"`
	Cron string        `json:"cron,omitempty"` // the cron expression of recurring timers; empty for others
	// Postponed is the number of timers that are first set for a later time, since the load will move them.
	Postponed int `json:"postponed,omitempty"`
	// Sequences are the sequences of the sets that a cancel, request or move expects, in the order of the messages.
	Sequences []uint64 `json:"sequences,omitempty"`
	API       string   `json:"api,omitempty"` // prefix of the JetStream API
}

// operation describes the operation of a load, for the progress.
func (l Load) operation() string {
	return cmp.Or(map[Verb]string{
		Set: "setting timers", Cancel: "cancelling timers", Request: "having the broker cancel timers",
		Move: "moving timers",
	}[l.Verb], "publishing")
}

// window returns the maximum number of messages without an answer.
func (l Load) window() int {
	if l.Verb == Request {
		return maxRequests
	}
	return maxOutstanding
}

// change returns the message that sets, moves or cancels a timer. The key of the timer contains the turn, so each turn
// has its own timers.
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
			due = due.Add(postponement)
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

// cancel returns the message that cancels the timer or schedule set with a sequence.
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

// parseAnswer parses the answer to a message of the load. It returns the sequence of the stored message, or the reason
// of the refusal.
func (l Load) parseAnswer(m *nats.Msg) (sequence uint64, err error) {
	if l.Verb == Request || l.Verb == Cancel && l.Side == Scheduler {
		var done struct {
			Outcome string // in an answer of the broker
			Success bool   // in an answer of the server
		}
		err := json.Unmarshal(m.Data, &done)
		if err != nil || !done.Success && done.Outcome != "cancelled" {
			return 0, fmt.Errorf("a cancel got the answer %.200q%.100q",
				m.Header.Get("Nats-Service-Error"), m.Data)
		}
		return 0, nil
	}
	return parseAck(m)
}

// parseAck returns the sequence of a stored message, or the reason why the stream has not stored it.
func parseAck(m *nats.Msg) (sequence uint64, err error) {
	switch ack, ok := jsapi.ParseAck(m); {
	case !ok:
		return 0, fmt.Errorf("no acknowledgement: %.100q (status %q)", m.Data, m.Header.Get("Status"))
	case ack.Refused():
		return 0, fmt.Errorf("%s (%d)", ack.Description, ack.Code)
	default:
		return ack.Sequence, nil
	}
}
