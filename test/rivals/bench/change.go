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

// A Verb is the operation of a load on named timers, or on schedules of the server.
type Verb string

// The verbs of a load.
const (
	Set           Verb = "set"
	Cancel        Verb = "cancel"  // by a publish on the timer's subject; for a schedule, by a delete request
	RequestCancel Verb = "request" // by a request to the broker
	Move          Verb = "move"
)

const (
	// maxRequests is the maximum number of unanswered requests to a broker.
	maxRequests = 64
	// postponement is the extra delay of the timers that the load will move to the due time of the other timers.
	postponement = time.Hour
)

// A Change has the Verb of a load, and its parameters.
type Change struct {
	Verb Verb `json:"verb,omitempty"`
	// Step is the time between the due times of two consecutive timers. Load.Due is the due time of the first timer.
	Step time.Duration `json:"step,omitempty"`
	Cron string        `json:"cron,omitempty"` // the cron expression of recurring timers; empty for timers that fire once
	// Postponed is the number of timers with the extra delay postponement. They have the first numbers.
	Postponed int `json:"postponed,omitempty"`
	// Sequences has, for each timer that the load cancels or moves, the sequence of its set, from LoadResult.Sequences.
	Sequences []uint64 `json:"sequences,omitempty"`
	API       string   `json:"api,omitempty"` // prefix of the JetStream API
}

// operation returns the Progress.Activity of a load.
func (l Load) operation() string {
	return cmp.Or(map[Verb]string{
		Set: "setting timers", Cancel: "cancelling timers", RequestCancel: "requesting the broker to cancel timers",
		Move: "moving timers",
	}[l.Verb], "publishing")
}

func (l Load) window() int {
	if l.Verb == RequestCancel {
		return maxRequests
	}
	return maxOutstanding
}

// change returns the message that sets, moves or cancels a timer. The key of the timer contains the turn, so each turn
// has its own timers.
func (l Load) change(n Names, number int) *nats.Msg {
	index, key, target := number-l.First, fmt.Sprintf("%d-%d", l.Turn, number), number%l.Targets
	m := &nats.Msg{Subject: n.timer(l.Side, key, target), Header: nats.Header{}}
	due := l.Due.Add(time.Duration(index) * l.Step)
	switch l.Verb {
	case Cancel, RequestCancel:
		return l.cancel(n, m, key, target, l.Sequences[index])
	case Move:
		m.Header.Set(message.HeaderExpected, strconv.FormatUint(l.Sequences[index], 10))
	default:
		if number < l.Postponed {
			due = due.Add(postponement)
		}
	}
	dueText := due.UTC().Format(time.RFC3339Nano)
	switch {
	case l.Side == Scheduler:
		m.Header.Set("Nats-Schedule", cmp.Or(l.Cron, "@at "+dueText))
		m.Header.Set("Nats-Schedule-Target", n.firing(target))
	case l.Cron != "":
		m.Header.Set(message.HeaderCron, l.Cron)
	default:
		m.Header.Set(message.HeaderUntil, dueText)
	}
	m.Data = Stamp{Turn: l.Turn, Number: uint32(number), Due: due}.Payload(l.Size)
	return m
}

// cancel returns the message that cancels a timer or a schedule. Sequence is the sequence in the answer to the set.
func (l Load) cancel(n Names, m *nats.Msg, key string, target int, sequence uint64) *nats.Msg {
	switch {
	case l.Side == Scheduler:
		m.Subject = l.API + ".STREAM.MSG.DELETE." + n.scheduleStream()
		m.Header, m.Data = nil, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, sequence)
	case l.Verb == RequestCancel:
		m.Subject = n.broker.TimerCall("cancel") + key + "." + n.Target(target)
		m.Header, m.Data = nil, fmt.Appendf(nil, `{"generation":%d}`, sequence)
	default:
		m.Header = nats.Header(entry.CancelHeader(sequence, "bench"))
	}
	return m
}

// parseAnswer returns the sequence in the answer to a message of the load, or zero for the answer to a request. It
// returns an error if the message was refused.
func (l Load) parseAnswer(m *nats.Msg) (sequence uint64, err error) {
	if l.Verb == RequestCancel || l.Verb == Cancel && l.Side == Scheduler {
		var answer struct {
			Outcome string // in an answer of the broker
			Success bool   // in an answer of the server
		}
		err := json.Unmarshal(m.Data, &answer)
		if err != nil || !answer.Success && answer.Outcome != "cancelled" {
			return 0, fmt.Errorf("the request to cancel a timer was refused: Nats-Service-Error %.200q, answer %.100q",
				m.Header.Get("Nats-Service-Error"), m.Data)
		}
		return 0, nil
	}
	return parseAck(m)
}

// parseAck returns the sequence of a stored message. It returns an error if the stream has not stored the message.
func parseAck(m *nats.Msg) (sequence uint64, err error) {
	switch ack, ok := jsapi.ParseAck(m); {
	case !ok:
		return 0, fmt.Errorf("the answer is no acknowledgement: %.100q (status %q)", m.Data, m.Header.Get("Status"))
	case ack.Refused():
		return 0, fmt.Errorf("%s (%d)", ack.Description, ack.Code)
	default:
		return ack.Sequence, nil
	}
}
