package stats

import (
	"slices"
	"time"

	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/streams"
)

// Status is the state of the broker, and its counts since its start.
type Status struct {
	Ready    bool          `json:"ready"`
	Draining bool          `json:"draining"`
	Lanes    []LaneStatus  `json:"lanes"` // all lanes, in the order in which messages pass them
	Links    []link.Status `json:"links"` // the connections read, write, deliver and control
	Counts
	Journal        JournalStatus `json:"journal"`
	Pauses         []PauseStatus `json:"paused"`          // the patterns whose targets are paused or being resumed
	PausedMessages uint64        `json:"paused_messages"` // the number of messages that wait in DELAY_PAUSED
}

// Active reports whether the instance is active: it owns the lanes.
func (s Status) Active() bool {
	return slices.ContainsFunc(s.Lanes, func(l LaneStatus) bool { return l.Owned })
}

// Counts has the counts of a broker that belong to no lane.
type Counts struct {
	Outcomes    map[string]uint64       `json:"outcomes"` // attempts by outcome: see deliver.Outcome
	DeadLetters map[message.Code]uint64 `json:"dead_letters"`
	// OwnDuplicates and ForeignDuplicates are the hops, retries and dead letters that a stream of the broker reported as
	// duplicates: own if the stream had the same message, foreign if it had another message or no longer had it.
	OwnDuplicates     uint64                     `json:"duplicates_ours"`
	ForeignDuplicates uint64                     `json:"duplicates_foreign"`
	Unstored          uint64                     `json:"unstored"`      // publishes that a stream of the broker refused
	EarlyReadings     uint64                     `json:"early"`         // clock readings that show an early delivery
	EarlyChecks       uint64                     `json:"early_checks"`  // clock readings that could show one
	SweptTimers       uint64                     `json:"timers_swept"`  // overdue timers found only by scanning the timers
	MissedRounds      uint64                     `json:"rounds_missed"` // missed rounds of series that will not fire
	PausedSeries      uint64                     `json:"series_paused"` // series paused by Delay-Pause-After
	Lateness          map[streams.Kind]Histogram `json:"lateness"`      // of deliveries, by kind of lane
	Rates             []RateCount                `json:"rates"`         // delivered and refused, by pattern of DELAY_RATE
	// Targets contains names that tenants chose. Any client that reaches /status can read the JSON of Counts, so Targets
	// is not in the JSON.
	Targets []TargetCount `json:"-"`
}

// JournalStatus counts the records of the journal, if the broker keeps one.
type JournalStatus struct {
	Kept    bool   `json:"kept"`
	Stored  uint64 `json:"stored"`
	Dropped uint64 `json:"dropped"` // records not stored, because the journal's stream was too slow or stored nothing
}

// PauseStatus is a pattern whose targets are paused or being resumed.
type PauseStatus struct {
	Pattern string      `json:"pattern"`
	State   pause.State `json:"state"`
	Since   time.Time   `json:"since"` // when the targets were last paused
}
