package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

type Op string

// The types of event.
const (
	Run     Op = "run"     // the conditions; the first event
	Fault   Op = "fault"   // phases: Invoke, OK with the proof, Healed
	Publish Op = "publish" // phases: Invoke, then OK, Fail or Unknown
	Timer   Op = "timer"   // the end of a request about a named timer
	Seen    Op = "seen"    // a core subscriber on Server received a message
	Stored  Op = "stored"  // the target's stream has a message on Server
	Read    Op = "read"    // the target's stream was read completely on Server
	Dead    Op = "dead"    // a message is a dead letter
	Rest    Op = "rest"    // number of messages in a lane at the end
	Ready   Op = "ready"   // a broker was ready, Delay after its start
	Broken  Op = "broken"  // the run itself observed a violation, described in Text
)

// Phase distinguishes the events of one op.
type Phase string

// The phases.
const (
	Invoke  Phase = "invoke"
	OK      Phase = "ok"
	Fail    Phase = "fail"    // the request had no effect
	Unknown Phase = "unknown" // the request may have had an effect
	Healed  Phase = "healed"  // a fault has ended
)

// Event is one line of a history. Times are nanoseconds since 1970.
type Event struct {
	At    int64  `json:"at"` // by the clock of the test
	Op    Op     `json:"op"`
	Phase Phase  `json:"phase,omitempty"`
	ID    string `json:"id,omitempty"` // the message: <publisher>-<counter>; or the timer: <player>-<counter>

	// These fields describe a message, in its publish and in its delivery.
	Subject string        `json:"subject,omitempty"` // subject of the publish, or of the delivery
	Target  string        `json:"target,omitempty"`  // expected subject of the delivery
	Delay   time.Duration `json:"delay,omitempty"`   // the requested delay; for Ready, how long the start took
	Until   int64         `json:"until,omitempty"`   // the requested time, if the request has no delay
	Sum     string        `json:"sum,omitempty"`     // checksum of the body and of one header
	Core    bool          `json:"core,omitempty"`    // the target has no stream: a witness's message counts as delivered
	Within  time.Duration `json:"within,omitempty"`  // maximum lateness; if zero, the run's bound applies

	Stream   string `json:"stream,omitempty"` // the stream that acknowledged; for Rest, the lane
	Sequence uint64 `json:"seq,omitempty"`    // the sequence in that stream or, for Stored, in the target's stream
	Server   string `json:"server,omitempty"` // the server that delivered or stored the message
	Stored   int64  `json:"stored,omitempty"` // the target's timestamp

	// These fields are headers of the broker on the message.
	DelayID  string `json:"delay_id,omitempty"`
	Due      int64  `json:"due,omitempty"`
	Accepted int64  `json:"accepted,omitempty"`
	Round    int    `json:"round,omitempty"` // number of a series' round
	Series   uint64 `json:"series,omitempty"`

	Count int    `json:"count,omitempty"` // for Rest: number of messages
	Text  string `json:"text,omitempty"`  // an error; a fault's name or proof; the code of a dead letter

	Timer      *TimerOp    `json:"timer,omitempty"`      // for Timer
	Conditions *Conditions `json:"conditions,omitempty"` // for Run
}

// Conditions are the measures by which a run is judged.
type Conditions struct {
	Name    string        `json:"name"`
	Seed    uint64        `json:"seed"`
	Brokers int           `json:"brokers"`
	Rate    int           `json:"rate"`    // publishes a second
	Players int           `json:"players"` // number of players of named timers
	Servers []string      `json:"servers"` // servers of which the run must have read the copy
	Window  time.Duration `json:"window"`  // duplicate window of the target's stream
	Bound   time.Duration `json:"bound"`   // maximum lateness, counted from the end of a fault
	// MinPublishes is the minimum number of publishes before, during and after each fault, because a fault without traffic
	// proves nothing. During a short fault, fewer are enough.
	MinPublishes int           `json:"least"`
	Ready        time.Duration `json:"ready,omitempty"` // maximum time until a started broker is ready; zero for none
	Late         time.Duration `json:"late,omitempty"`  // maximum lateness at any time, also during faults; zero for none
	// Clean means that no fault of the run excuses a duplicate, not even one that the target's stream drops.
	Clean bool `json:"clean"`
}

// Log collects the events of a run. It is safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	events []Event
}

// Add appends an event, and sets its time unless it has one.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.At == 0 {
		e.At = time.Now().UnixNano()
	}
	l.events = append(l.events, e)
}

func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

func Write(w io.Writer, events []Event) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	for _, event := range events {
		if err := e.Encode(event); err != nil {
			return fmt.Errorf("write the history: %w", err)
		}
	}
	return b.Flush()
}

func Parse(r io.Reader) ([]Event, error) {
	var events []Event
	d := json.NewDecoder(bufio.NewReader(r))
	for {
		var e Event
		switch err := d.Decode(&e); err {
		case nil:
			events = append(events, e)
		case io.EOF:
			return events, nil
		default:
			return nil, fmt.Errorf("event %d of the history: %w", len(events)+1, err)
		}
	}
}
