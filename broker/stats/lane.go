package stats

import (
	"encoding/json"
	"time"

	"delaybroker/broker/fault"
	"delaybroker/broker/streams"
)

// MaxUnworked is the time without a working loop after which a lane makes its instance unready.
const MaxUnworked = 10 * time.Second

// MaxOverdue is the time after which an overdue message makes its instance unready. Before that, an instance of a newer
// broker takes over messages that only it can read, and an outage of a second ends.
const MaxOverdue = 10 * time.Second

// LaneStatus is the state of one lane. If this instance does not own the lane, the state is zero, and the counts are
// from the time when this instance owned the lane. Durations are seconds in JSON.
type LaneStatus struct {
	Stream string        `json:"stream"`
	Kind   string        `json:"kind"`
	Level  string        `json:"level,omitempty"`
	Delay  time.Duration `json:"delay"`

	Owned   bool   `json:"owned"`
	Owner   string `json:"owner,omitempty"` // the active instance
	InDoubt bool   `json:"in_doubt"`        // ownership is uncertain, so nothing is delivered
	Live    bool   `json:"live"`            // the lane's consumer is probably alive
	// Unworked is the time for which the active instance has had no loop that works the lane; zero if it has one.
	Unworked time.Duration `json:"unworked"`
	Fault    *fault.Fault  `json:"fault,omitempty"` // why the messages of the lane wait; nil if they do not

	Memory

	Read      uint64    `json:"read"`                // sequence of the last message read; zero before the first
	Arrived   uint64    `json:"arrived,omitempty"`   // all messages up to this sequence were delivered or moved
	ResumesAt time.Time `json:"resumes_at,omitzero"` // until then, no unread message is due, and none is read
	Pending   uint64    `json:"pending"`             // messages not yet delivered or moved
	// UnopenedEntries is the number of timer entries that are sealed with an unknown key, by the latest read of the whole
	// stream of timers.
	UnopenedEntries int `json:"unopened,omitempty"`

	Overdue         time.Duration `json:"overdue"` // how long the most overdue message is overdue
	NextDue         time.Time     `json:"next_due,omitzero"`
	NewerMessages   int           `json:"newer,omitempty"` // messages of a newer format, which wait for a newer broker
	WaitingMessages int           `json:"waiting"`         // messages in memory that wait for a time or a closing pause
	CommitAge       time.Duration `json:"commit_age"`      // age of the oldest uncommitted delivery or move

	Bytes    uint64 `json:"bytes"`     // size of the stream, by its leader's newest answer
	MaxBytes int64  `json:"max_bytes"` // the stream's limit; zero or less means no limit

	ClockKnown  bool          `json:"clock_known"`  // the leader returned its time within MaxClockAge
	ClockOffset time.Duration `json:"clock_offset"` // the leader's clock minus the local clock

	Moves
}

// Memory is a lane's use of memory.
type Memory struct {
	Held      int  `json:"held"`       // messages in memory
	HeldBytes int  `json:"held_bytes"` // the memory of these messages, in bytes
	Span      int  `json:"span"`       // sequences from the first message that has not left to the last message read
	Full      bool `json:"full"`       // memory is full; reading continues when messages leave
}

// Moves counts the deliveries and the moves of a lane's messages.
type Moves struct {
	Delivered uint64 `json:"delivered"`
	Hops      uint64 `json:"hops"`
	Retries   uint64 `json:"retries"` // moves into a retry lane, for any reason
	Repeats   uint64 `json:"repeats"` // publishes repeated after no answer or lack of room
}

// Late reports whether a message is overdue by MaxOverdue, and the broker itself is late, and not a target.
func (l LaneStatus) Late() bool {
	return l.Overdue >= MaxOverdue && !streams.Kind(l.Kind).WaitsForTarget()
}

// MarshalJSON encodes durations in seconds.
func (l LaneStatus) MarshalJSON() ([]byte, error) {
	type plain LaneStatus // a type without the method MarshalJSON, which would call itself
	return json.Marshal(struct {
		plain
		Delay       float64 `json:"delay"`
		Overdue     float64 `json:"overdue"`
		Unworked    float64 `json:"unworked"`
		CommitAge   float64 `json:"commit_age"`
		ClockOffset float64 `json:"clock_offset"`
	}{
		plain(l), l.Delay.Seconds(), l.Overdue.Seconds(), l.Unworked.Seconds(), l.CommitAge.Seconds(),
		l.ClockOffset.Seconds(),
	})
}
