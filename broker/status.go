package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/deliver"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
)

// Status is what the broker is doing and has done since it started.
type Status struct {
	Ready       bool                      `json:"ready"`
	Draining    bool                      `json:"draining"`
	Lanes       []LaneStatus              `json:"lanes"`    // all lanes, in the order in which messages pass them
	Links       []LinkStatus              `json:"links"`    // read, write, deliver, control
	Outcomes    map[string]uint64         `json:"outcomes"` // of deliveries: see deliver.Outcome
	Dead        map[message.Code]uint64   `json:"dead_letters"`
	Ours        uint64                    `json:"duplicates_ours"`    // publishes that were stored already, and found
	Foreign     uint64                    `json:"duplicates_foreign"` // another message had the id
	Unstored    uint64                    `json:"unstored"`           // publishes that our own streams refused
	Early       uint64                    `json:"early"`              // looks that found an early delivery; must stay zero
	EarlyChecks uint64                    `json:"early_checks"`       // looks that could have found one
	Swept       uint64                    `json:"timers_swept"`       // overdue timers that were found in their stream only
	Lateness    map[layout.Kind]Histogram `json:"lateness"`           // of deliveries, by kind of lane
	Journal     JournalStatus             `json:"journal"`
	Paused      []PauseStatus             `json:"paused"`          // the targets that are paused or being resumed
	Waiting     uint64                    `json:"paused_messages"` // and how many messages wait for them
}

// JournalStatus counts the records of deliveries, if a journal is kept.
type JournalStatus struct {
	Kept    bool   `json:"kept"`
	Stored  uint64 `json:"stored"`
	Dropped uint64 `json:"dropped"` // the journal's stream took nothing, or too little
}

// PauseStatus is a pattern of targets that are paused.
type PauseStatus struct {
	Pattern string      `json:"pattern"`
	State   pause.State `json:"state"`
	Since   time.Time   `json:"since"` // when it was paused
}

// LaneStatus is the state of one lane. For a lane that another instance works, only the owner and the counts are set,
// and the counts are of the time when the lane was ours. Durations are seconds in JSON.
type LaneStatus struct {
	Stream string        `json:"stream"`
	Kind   string        `json:"kind"`
	Level  string        `json:"level,omitempty"`
	Delay  time.Duration `json:"delay"`
	Owned  bool          `json:"owned"`
	Owner  string        `json:"owner,omitempty"` // the instance, when several share the work

	InDoubt   bool          `json:"in_doubt"`            // owned, but not for certain: nothing is delivered until it is
	Live      bool          `json:"live"`                // its consumer is believed alive
	Held      int           `json:"held"`                // messages in memory
	HeldBytes int           `json:"held_bytes"`          // and their bytes
	Span      int           `json:"span"`                // messages between cursor and read
	Full      bool          `json:"full"`                // it reads no further until messages have arrived elsewhere
	Read      uint64        `json:"read"`                // the last sequence read; zero before the first
	ResumesAt time.Time     `json:"resumes_at,omitzero"` // reading rests until then: nothing unread is due before
	Pending   uint64        `json:"pending"`             // messages that have not arrived elsewhere: see gauge
	Overdue   time.Duration `json:"overdue"`             // how long ago the oldest message should have left
	NextDue   time.Time     `json:"next_due,omitzero"`
	Waiting   int           `json:"waiting"`    // messages on the wheel, or waiting for the leader's time
	CommitAge time.Duration `json:"commit_age"` // how long an arrived message has waited for its commit
	Bytes     uint64        `json:"bytes"`      // of the stream, when it was last looked at
	MaxBytes  int64         `json:"max_bytes"`  // that the stream may have; zero or less is no limit

	ClockKnown  bool          `json:"clock_known"`  // its leader has told its time lately
	ClockOffset time.Duration `json:"clock_offset"` // of the leader's clock to ours

	Delivered uint64 `json:"delivered"`
	Hops      uint64 `json:"hops"`
	Retries   uint64 `json:"retries"` // moves into a retry lane, for any reason
	Repeats   uint64 `json:"repeats"` // publishes that were not answered, or found no room
}

// LinkStatus is the state of a connection.
type LinkStatus struct {
	Name       string `json:"name"`
	Up         bool   `json:"up"`
	Reconnects uint64 `json:"reconnects"`
}

// Status looks at all lanes. It takes no lock that a loop holds, and asks NATS nothing.
func (b *Broker) Status() Status {
	s := Status{
		Draining: b.draining.Load(), Links: b.conns.status(),
		Outcomes: make(map[string]uint64), Dead: make(map[message.Code]uint64), Lateness: make(map[layout.Kind]Histogram),
		Ours: b.tally.ours.Load(), Foreign: b.tally.foreign.Load(), Unstored: b.tally.unstored.Load(),
		Early: b.tally.early.Load(), EarlyChecks: b.tally.judged.Load(),
		Journal: JournalStatus{
			Kept: b.streams.cfg.Journal > 0, Stored: b.tally.journal.Stored.Load(), Dropped: b.tally.journal.Dropped.Load(),
		},
		Swept: b.tally.swept.Load(),
	}
	select {
	case <-b.ready:
		s.Ready = true
	default:
	}
	for o := range b.tally.outcomes {
		s.Outcomes[deliver.Outcome(o).String()] = b.tally.outcomes[o].Load()
	}
	for code, n := range b.tally.dead {
		s.Dead[code] = n.Load()
	}
	for kind, h := range b.tally.lateness {
		s.Lateness[kind] = h.read()
	}
	s.Paused, s.Waiting = []PauseStatus{}, b.pauses.Waiting()
	for _, p := range b.pauses.List().Present() {
		s.Paused = append(s.Paused, PauseStatus{Pattern: p.Pattern, State: p.State, Since: p.Since})
	}
	now := time.Now()
	owned := make(map[string]*worker)
	for _, w := range b.roster.enlisted() {
		owned[w.lane.Stream] = w
	}
	for _, c := range b.roster.counted() {
		l := c.status()
		l.Owner = b.leaser.Owner(l.Stream)
		if w := owned[l.Stream]; w != nil {
			l.Owned, l.InDoubt, l.Live = true, !w.lease.Held(), w.reading.Live() != 0
			w.gauge.fill(&l, now)
		}
		if l.Kind == string(layout.Paused) {
			l.Owned, l.Live, l.Level = b.pauses.owning.Load(), b.pauses.owning.Load(), ""
			l.Pending = b.pauses.Waiting()
		}
		s.Lanes = append(s.Lanes, l)
	}
	slices.SortFunc(s.Lanes, byWay)
	return s
}

// byWay orders lanes as messages pass them: the intake, the levels from the shortest to the longest, retries, what is
// paused.
func byWay(a, b LaneStatus) int {
	kinds := layout.Lanes()
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, layout.Kind(a.Kind)), slices.Index(kinds, layout.Kind(b.Kind))),
		cmp.Compare(a.Delay, b.Delay),
		strings.Compare(a.Stream, b.Stream))
}

// MarshalJSON writes durations in seconds.
func (l LaneStatus) MarshalJSON() ([]byte, error) {
	type plain LaneStatus // without this method
	return json.Marshal(struct {
		plain
		Delay       float64 `json:"delay"`
		Overdue     float64 `json:"overdue"`
		CommitAge   float64 `json:"commit_age"`
		ClockOffset float64 `json:"clock_offset"`
	}{plain(l), l.Delay.Seconds(), l.Overdue.Seconds(), l.CommitAge.Seconds(), l.ClockOffset.Seconds()})
}

func (l Links) status() []LinkStatus {
	of := func(name string, nc *nats.Conn) LinkStatus {
		return LinkStatus{Name: name, Up: nc.IsConnected(), Reconnects: nc.Stats().Reconnects}
	}
	return []LinkStatus{of("read", l.Read), of("write", l.Write), of("deliver", l.Deliver), of("control", l.Control)}
}

// Alive returns nil when the loop of every lane has turned before ctx ended. It says nothing about NATS.
func (b *Broker) Alive(ctx context.Context) error {
	workers := b.roster.enlisted()
	stuck := make([]error, len(workers))
	var asking sync.WaitGroup
	for i, w := range workers {
		asking.Go(func() { // at the same time, or a loop that stands still would use up the time of the others
			select {
			case w.ping <- struct{}{}:
			case <-w.gone:
			case <-ctx.Done():
				stuck[i] = fmt.Errorf("the loop of %s does not turn", w.lane.Stream)
			}
		})
	}
	asking.Wait()
	return errors.Join(stuck...)
}
