package stats

import (
	"time"

	"delaybroker/broker/fault"
	"delaybroker/broker/link"
	"delaybroker/broker/pause"
)

// InstanceStatus is the report of a running instance, in reply to a request on message.Names.StatusCall. Any client
// that may publish below StatusAnswers can write an answer, so an answer is for display only, unless the caller
// verifies its seal.
type InstanceStatus struct {
	Instance string   `json:"instance"` // unique among the running instances
	Version  string   `json:"version,omitempty"`
	Format   int      `json:"format,omitempty"` // newest message format that it can read
	Ready    bool     `json:"ready"`
	Draining bool     `json:"draining,omitempty"`
	Journal  bool     `json:"journal,omitempty"` // the instance keeps a journal
	Users    []string `json:"users,omitempty"`   // users of its connections; empty if one of them is unknown
	// Refused are the permissions that the server has recently denied the instance, except the permissions for targets.
	Refused []link.Denial `json:"refused,omitempty"`
	Lanes   []LaneAnswer  `json:"lanes"`            // lanes that the instance owns
	Totals  *Totals       `json:"totals,omitempty"` // counts since the instance started
	// Pauses is its list of paused targets.
	Pauses PausesAnswer `json:"pauses"`
	// Settings has a digest of each setting that all instances should have in common, by name.
	Settings map[string]string `json:"settings,omitempty"`
	// MissingRecords is the number of records that are missing in its journal: see journal.Writer.Missing.
	MissingRecords uint64 `json:"journal_missing,omitempty"`
}

// PausesAnswer is the list of paused targets in an instance.
type PausesAnswer struct {
	Applied int64        `json:"applied"`         // newest version that the instance has applied
	Record  pause.Record `json:"record,omitzero"` // the newest list that the instance knows
}

// LaneAnswer is a lane's state, from its owner.
type LaneAnswer struct {
	Stream   string  `json:"stream"`
	Live     bool    `json:"live"`                       // the lane's consumer is probably alive
	Unworked float64 `json:"unworked_seconds,omitempty"` // see LaneStatus.Unworked
	// Fault is why the messages of the lane wait; nil if they do not.
	Fault           *fault.Fault `json:"fault,omitempty"`
	InDoubt         bool         `json:"in_doubt,omitempty"`  // ownership is uncertain, so nothing is delivered
	Read            uint64       `json:"read"`                // sequence of the last message read; zero before the first
	Arrived         uint64       `json:"arrived,omitempty"`   // see LaneStatus.Arrived
	Held            int          `json:"held"`                // messages in memory
	Full            bool         `json:"full,omitempty"`      // memory is full; reading continues when messages leave
	ResumesAt       time.Time    `json:"resumes_at,omitzero"` // until then, no unread message is due, and none is read
	Pending         uint64       `json:"pending"`             // messages not yet delivered or moved, by the newest count
	Overdue         float64      `json:"overdue_seconds"`     // how long the most overdue message is overdue
	UnopenedEntries int          `json:"unopened,omitempty"`  // entries of timers that are sealed with an unknown key
	NewerMessages   int          `json:"newer,omitempty"`     // messages of a newer format, which wait for a newer broker
}

// LaneAnswers returns the lanes that the instance owns.
func (s Status) LaneAnswers() []LaneAnswer {
	all := []LaneAnswer{}
	for _, l := range s.Lanes {
		if l.Owned || l.Unworked > 0 {
			all = append(all, LaneAnswer{
				Stream: l.Stream, Live: l.Live, Fault: l.Fault, InDoubt: l.InDoubt,
				Unworked: l.Unworked.Seconds(), Read: l.Read, Arrived: l.Arrived, Held: l.Held,
				Full: l.Full, ResumesAt: l.ResumesAt, Pending: l.Pending, Overdue: l.Overdue.Seconds(),
				UnopenedEntries: l.UnopenedEntries, NewerMessages: l.NewerMessages,
			})
		}
	}
	return all
}
