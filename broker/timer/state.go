package timer

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// ClaimTimeout is the time for which an instance leaves the firing of another instance to that one. It is longer than a
// lease lives after its last successful heartbeat. If the table of owners shows no lane of the other instance,
// RosterTimeout, the maximum age of the table, is enough.
const (
	ClaimTimeout  = 6 * time.Second
	RosterTimeout = 2 * time.Second
)

// StaleFor is how long a leader must report an end of its stream below the generation before the report counts as
// proof. For this long, a deposed leader may not know that it is deposed.
const StaleFor = 10 * time.Second

// State is the state of a timer: the last entry of its subject, as the leader of the stream returns it, or an earlier,
// decisive entry if a client has put another over it.
type State struct {
	None     bool      // the subject has no entry, and had none after LastSeq was read
	LastSeq  uint64    // of the stream, if there is no entry, or one older than the generation
	Created  time.Time // of the stream, likewise
	Lasting  bool      // the leader has reported the same for at least StaleFor
	Settled  bool      // the entry records the firing of a round, and that round is settled
	Alone    bool      // it was the first entry of its subject: no entry is left before it
	Sequence uint64
	At       time.Time
	Entry    entry.Entry
	In       message.Incoming // the stored entry
}

// Over reports whether the timer has ended: its subject has no entry, or its last entry only records an outcome.
func (s State) Over() bool {
	return s.Sequence == 0 || s.Entry.Kind == entry.Cancel || s.Entry.Kind == entry.Over ||
		s.Entry.Kind == entry.Set && s.Entry.Problem != nil
}

// Behind reports whether the stream ends before a generation, according to its leader.
func (s State) Behind(generation uint64) bool {
	return (s.None || s.Sequence < generation) && s.LastSeq < generation
}
