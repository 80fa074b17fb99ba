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

// Firing is a generation that is due.
type Firing struct {
	Generation uint64
	At         time.Time // when it was set; tells two histories of a stream apart
	By         string    // this instance
}

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

// Verdict is what to do about a firing.
type Verdict int

// The verdicts.
const (
	Again   Verdict = iota // that proves nothing: look again
	Claim                  // it is pending: store the firing, expecting it
	Deliver                // it has fired, and nobody else is at it
	Wait                   // another instance has fired it, and may be at it
	Drop                   // it was decided otherwise, or is over
)

// Behind reports whether the stream ends before the generation, as far as the leader says.
func (s State) Behind(f Firing) bool {
	return (s.None || s.Sequence < f.Generation) && s.LastSeq < f.Generation
}

// Judge decides about a firing by the last entry of its subject. Patience is how long the instance that the entry names
// may take. A leader that was deposed and does not know it gives an older entry, or none: it is not believed.
func Judge(f Firing, found State, now time.Time, patience time.Duration) (Verdict, time.Time) {
	if found.Behind(f) && !found.Lasting && !found.Created.After(f.At) {
		return Again, time.Time{}
	}
	e := found.Entry
	switch {
	case found.None, found.Sequence < f.Generation:
		return Drop, time.Time{} // where an older one stands again, a power cut took the generation, or a restore
	case found.Sequence == f.Generation:
		if !found.At.Equal(f.At) || e.Kind != entry.Set {
			return Drop, time.Time{} // of another history of the stream
		}
		return Claim, time.Time{}
	case e.Kind == entry.Unproven:
		return Again, time.Time{}
	case !e.Fires(f.Generation):
		return Drop, time.Time{} // another set, a cancel, or over
	case found.Settled:
		return Drop, time.Time{}
	}
	if id, err := message.ParseID(e.Fired().ID); err == nil && !id.At.Equal(f.At) {
		return Drop, time.Time{} // likewise
	}
	if until := found.At.Add(patience); e.By != f.By && now.Before(until) {
		return Wait, until
	}
	return Deliver, time.Time{}
}
