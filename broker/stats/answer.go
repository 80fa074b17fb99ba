package stats

import (
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/link"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats/history"
)

// Answer is what a running instance reports of itself to an operator who asks on message.Names.StatusCall. It is for
// display only: in an account where other clients may publish below StatusAnswers, such a client may have written it.
// Whoever does something on its account looks at its seal.
type Answer struct {
	Instance string   `json:"instance"` // unique among the running instances
	Version  string   `json:"version,omitempty"`
	Format   int      `json:"format,omitempty"` // the newest format of messages that it reads; zero of an older broker
	Ready    bool     `json:"ready"`
	Draining bool     `json:"draining,omitempty"`
	Journal  bool     `json:"journal,omitempty"` // it keeps one
	Alone    bool     `json:"alone,omitempty"`   // it shares the work with no other instance, by its settings
	Users    []string `json:"users,omitempty"`   // of its connections; none if one of them is not known
	// Refused are the rights that the server denied it in the last minutes. Targets are not among them: see Targets.
	Refused []link.Refusal `json:"refused,omitempty"`
	Lanes   []LaneAnswer   `json:"lanes"`            // the lanes that the instance owns
	Totals  *Totals        `json:"totals,omitempty"` // what it has done since it started; nil of an older broker
	// History is what it did lately, where that was asked for and is kept.
	History *history.Series `json:"history,omitempty"`
	// Targets are the targets that it delivered to, where that was asked for.
	Targets []TargetAnswer `json:"targets,omitempty"`
	// Pauses is by which list of paused targets the instance acts. A broker that knows nothing of pauses says nothing.
	Pauses *PausesAnswer `json:"pauses,omitempty"`
	// Writer is what its journal has not stored yet; nil without a journal, and of an older broker.
	Writer *journal.State `json:"journal_writer,omitempty"`
}

// PausesAnswer is the list of paused targets as an instance knows it.
type PausesAnswer struct {
	Applied int64        `json:"applied"`         // the version by which it acts for certain
	Record  pause.Record `json:"record,omitzero"` // the list that it knows
}

// LaneAnswer is a lane as its owner sees it.
type LaneAnswer struct {
	Stream    string    `json:"stream"`
	Live      bool      `json:"live"`                // its consumer is believed alive
	InDoubt   bool      `json:"in_doubt,omitempty"`  // the ownership is not certain, and nothing is delivered until it is
	Read      uint64    `json:"read"`                // the last sequence read; zero before the first
	Held      int       `json:"held"`                // messages in memory
	Full      bool      `json:"full,omitempty"`      // memory is full: reading goes on when messages leave
	ResumesAt time.Time `json:"resumes_at,omitzero"` // reading rests until then: nothing unread is due before
	Pending   uint64    `json:"pending"`             // messages that have not arrived elsewhere, a few seconds old
	Overdue   float64   `json:"overdue_seconds"`     // how long ago the oldest message should have left
	Unopened  int       `json:"unopened,omitempty"`  // entries of timers that are sealed with a key that is not known
	Newer     int       `json:"newer,omitempty"`     // messages of a newer format, which wait for a newer broker
}

// LaneAnswers are the lanes that the instance owns.
func (s Status) LaneAnswers() []LaneAnswer {
	all := []LaneAnswer{}
	for _, l := range s.Lanes {
		if l.Owned {
			all = append(all, LaneAnswer{
				Stream: l.Stream, Live: l.Live, InDoubt: l.InDoubt, Read: l.Read, Held: l.Held, Full: l.Full,
				ResumesAt: l.ResumesAt, Pending: l.Pending, Overdue: l.Overdue.Seconds(),
				Unopened: l.Unopened, Newer: l.Newer,
			})
		}
	}
	return all
}
