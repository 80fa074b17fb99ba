package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Op is the subject of an event.
type Op string

// The events of a run, in the order in which they first appear.
const (
	Run     Op = "run"     // the conditions; the first event
	Fault   Op = "fault"   // Invoke, OK when it is proved to have happened, Healed
	Publish Op = "publish" // Invoke, then OK, Fail or Unknown
	Timer   Op = "timer"   // a request about a named timer has ended
	Seen    Op = "seen"    // a core subscriber on Server saw a message at its target
	Stored  Op = "stored"  // the target's stream holds it on Server
	Read    Op = "read"    // all that the target's stream holds on Server has been read
	Dead    Op = "dead"    // it is among the dead letters
	Rest    Op = "rest"    // what a lane still holds when all should be quiet
	Ready   Op = "ready"   // a broker was started and is ready, after Delay
	Broken  Op = "broken"  // the run itself watched a promise that was not kept: Text says which
)

// Phase tells the events of one op apart.
type Phase string

// The phases.
const (
	Invoke  Phase = "invoke"
	OK      Phase = "ok"
	Fail    Phase = "fail"    // certainly without effect
	Unknown Phase = "unknown" // with or without effect
	Healed  Phase = "healed"  // a fault is over
)

// Event is one line of a history. Times are nanoseconds since 1970. It is flat for those who search a history with grep
// or jq: an id or a stream has one name, whatever happened to it.
type Event struct {
	At    int64  `json:"at"` // by the clock of the test
	Op    Op     `json:"op"`
	Phase Phase  `json:"phase,omitempty"`
	ID    string `json:"id,omitempty"` // of a message: <publisher>-<counter>

	// Of a message that is published, and as it arrives.
	Subject string        `json:"subject,omitempty"` // of the publish, or where it arrived
	Target  string        `json:"target,omitempty"`  // where it should
	Delay   time.Duration `json:"delay,omitempty"`   // asked for
	Until   int64         `json:"until,omitempty"`   // the time asked for, instead
	Sum     string        `json:"sum,omitempty"`     // of body and headers
	Core    bool          `json:"core,omitempty"`    // the target is no stream: what a witness sees has arrived
	Within  time.Duration `json:"within,omitempty"`  // the lateness allowed, whatever goes wrong; zero is the run's bound

	Stream   string `json:"stream,omitempty"` // that acknowledged it; of Rest, the lane
	Sequence uint64 `json:"seq,omitempty"`    // there, or in the target's stream
	Server   string `json:"server,omitempty"` // that showed it
	Stored   int64  `json:"stored,omitempty"` // the target's timestamp

	// The broker's own headers on the message.
	DelayID  string `json:"delay_id,omitempty"`
	Due      int64  `json:"due,omitempty"`
	Accepted int64  `json:"accepted,omitempty"`
	Round    int    `json:"round,omitempty"` // of a timer that recurs
	Series   uint64 `json:"series,omitempty"`

	Count int    `json:"count,omitempty"` // of Rest, messages
	Text  string `json:"text,omitempty"`  // an error; the name of a fault; the proof of it; the code of a dead letter

	Timer      *TimerOp    `json:"timer,omitempty"`      // of Timer
	Conditions *Conditions `json:"conditions,omitempty"` // of Run
}

// Conditions are the measures by which a run is judged.
type Conditions struct {
	Name    string        `json:"name"`
	Seed    uint64        `json:"seed"`
	Brokers int           `json:"brokers"`
	Rate    int           `json:"rate"`    // publishes a second
	Players int           `json:"players"` // of named timers
	Servers []string      `json:"servers"` // each of which must have been read
	Window  time.Duration `json:"window"`  // in which the target's stream recognises copies
	Bound   time.Duration `json:"bound"`   // of lateness, counted from the end of a fault
	// publishes before, during and after each fault; otherwise it shows nothing
	Least int           `json:"least"`
	Ready time.Duration `json:"ready,omitempty"` // a broker that is started has to be ready by then, if not zero
	Late  time.Duration `json:"late,omitempty"`  // the lateness allowed with the faults in it, if not zero
	// Clean means that no fault of the run excuses a copy, not even one that the target's stream drops.
	Clean bool `json:"clean"`
}

// Log collects the events of a run. It is safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	events []Event
}

// Add appends an event and stamps it, unless it is stamped already.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.At == 0 {
		e.At = time.Now().UnixNano()
	}
	l.events = append(l.events, e)
}

// Events are those so far.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

// Write writes events as lines of JSON.
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

// Parse reads the result of Write.
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
