package stats

import (
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/link"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats/history"
)

// Answer is the report of a running instance, in reply to a request on message.Names.StatusCall. Any client that may
// publish below StatusAnswers can write an answer, so an answer is for display only, unless the caller verifies its
// seal.
type Answer struct {
	Instance       string   `json:"instance"` // unique among the running instances
	Version        string   `json:"version,omitempty"`
	Format         int      `json:"format,omitempty"` // newest message format that it can read; zero from an older broker
	Ready          bool     `json:"ready"`
	Draining       bool     `json:"draining,omitempty"`
	Journal        bool     `json:"journal,omitempty"` // the instance keeps a journal
	SingleInstance bool     `json:"alone,omitempty"`   // the instance's settings exclude other instances
	Users          []string `json:"users,omitempty"`   // users of its connections; empty if one of them is unknown
	// Refused are the permissions that the server has recently denied the instance, except the permissions for targets.
	Refused []link.Refusal `json:"refused,omitempty"`
	Lanes   []LaneAnswer   `json:"lanes"`            // lanes that the instance owns
	Totals  *Totals        `json:"totals,omitempty"` // counts since the instance started; nil from an older broker
	// History has its counts over time, if requested and available.
	History *history.Series `json:"history,omitempty"`
	// Targets are the targets of its deliveries, if requested.
	Targets []TargetAnswer `json:"targets,omitempty"`
	// Pauses is its list of paused targets; nil from a broker without support for pauses.
	Pauses *PausesAnswer `json:"pauses,omitempty"`
	// Writer is the state of its journal's writer; nil without a journal, and from an older broker.
	Writer *journal.State `json:"journal_writer,omitempty"`
}

// PausesAnswer is the list of paused targets in an instance.
type PausesAnswer struct {
	Applied int64        `json:"applied"`         // newest version that the instance has applied
	Record  pause.Record `json:"record,omitzero"` // the newest list that the instance knows
}

// LaneAnswer is a lane's state, from its owner.
type LaneAnswer struct {
	Stream          string    `json:"stream"`
	Live            bool      `json:"live"`                // the lane's consumer is probably alive
	InDoubt         bool      `json:"in_doubt,omitempty"`  // ownership is uncertain, so nothing is delivered
	Read            uint64    `json:"read"`                // sequence of the last message read; zero before the first
	Held            int       `json:"held"`                // messages in memory
	Full            bool      `json:"full,omitempty"`      // memory is full; reading continues when messages leave
	ResumesAt       time.Time `json:"resumes_at,omitzero"` // until then, no unread message is due, and none is read
	Pending         uint64    `json:"pending"`             // messages not yet delivered or moved, by the newest count
	Overdue         float64   `json:"overdue_seconds"`     // how long the most overdue message is overdue
	UnopenedEntries int       `json:"unopened,omitempty"`  // entries of timers that are sealed with an unknown key
	NewerMessages   int       `json:"newer,omitempty"`     // messages of a newer format, which wait for a newer broker
}

// LaneAnswers returns the lanes that the instance owns.
func (s Status) LaneAnswers() []LaneAnswer {
	all := []LaneAnswer{}
	for _, l := range s.Lanes {
		if l.Owned {
			all = append(all, LaneAnswer{
				Stream: l.Stream, Live: l.Live, InDoubt: l.InDoubt, Read: l.Read, Held: l.Held, Full: l.Full,
				ResumesAt: l.ResumesAt, Pending: l.Pending, Overdue: l.Overdue.Seconds(),
				UnopenedEntries: l.UnopenedEntries, NewerMessages: l.NewerMessages,
			})
		}
	}
	return all
}
