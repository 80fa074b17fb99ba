package timer

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// Patience is how long the firing of another instance is left to that instance: longer than a lease outlives its last
// good beat. RosterPatience is enough for an instance that owns no lane by the table that instances keep, which may be
// so old.
const (
	Patience       = 6 * time.Second
	RosterPatience = 2 * time.Second
)

// StaleFor is how long a stream must end before the generation until that is believed: until then, a leader that was
// deposed may not know it.
const StaleFor = 10 * time.Second

// State is the state of a timer: the last entry of its subject, as the leader of the stream gives it, or an earlier one
// that decides more where a client has put something over it.
type State struct {
	None     bool      // there is none, and so it was after LastSeq was read
	LastSeq  uint64    // of the stream, if there is none, or an older one than the generation
	Created  time.Time // of the stream, likewise
	Lasting  bool      // and the leader has said so for StaleFor
	Settled  bool      // the entry says that the firing's round has fired, and that one is settled
	Alone    bool      // it was the first entry of its subject: nothing is left before it
	Sequence uint64
	At       time.Time
	Entry    entry.Entry
	In       message.Incoming // the entry as it is stored
}

// Over reports whether nothing will come of the timer any more: there is none, or the entry only says what became of
// one.
func (s State) Over() bool {
	return s.Sequence == 0 || s.Entry.Kind == entry.Cancel || s.Entry.Kind == entry.Over ||
		s.Entry.Kind == entry.Set && s.Entry.Problem != nil
}

// Behind reports whether the stream ends before a generation, as far as the leader says.
func (s State) Behind(generation uint64) bool {
	return (s.None || s.Sequence < generation) && s.LastSeq < generation
}
