package timer

import (
	"fmt"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// StaleFor is the time for which a leader must report that its stream ends below a generation, before the report counts
// as proof. A deposed leader may report an old state for up to this time.
const StaleFor = 10 * time.Second

// State is the state of a timer: the last entry of its subject. If a client has published over the entry that shows the
// outcome of a firing or of a request, State may be that entry instead.
type State struct {
	NoEntry      bool      // the subject had no entry when the stream had reached LastSeq
	LastSeq      uint64    // the highest sequence of the stream, of any subject, that the read has shown
	Created      time.Time // when the stream was created; zero if that was not read
	EndConfirmed bool      // for at least StaleFor, the leader has reported an end below the timer's generation
	Settled      bool      // the entry records the firing of a round, and that round is settled
	IsFirst      bool      // the subject has no earlier entry; false also if that is unknown
	Sequence     uint64
	At           time.Time // when the entry was stored
	Entry        entry.Entry
	Message      message.Incoming // the stored entry
}

// Ended reports whether the timer has ended: its subject has no entry, or the last entry is a cancel, an outcome or an
// invalid set.
func (s State) Ended() bool {
	return s.Sequence == 0 || s.Entry.Kind == entry.Cancel || s.Entry.Kind == entry.Over ||
		s.Entry.Kind == entry.Set && s.Entry.Problem != nil
}

// EndsBelow reports whether the stream ends below a generation, according to its leader.
func (s State) EndsBelow(generation uint64) bool {
	return (s.NoEntry || s.Sequence < generation) && s.LastSeq < generation
}

// Cursor is the position from which the next active instance reads the stream of timers. The cursor is stored in the
// stream itself.
type Cursor struct {
	Next    uint64    // all entries below this sequence are handled: for example, a marker is stored
	Created time.Time // when the stream was created
}

// String returns the body of the cursor's entry.
func (c Cursor) String() string { return fmt.Sprintf("armed %d %d", c.Next, c.Created.UnixNano()) }

// ParseCursor parses the result of String, and accepts no other form. Own is the sequence of the cursor's entry: a
// cursor with a higher Next is invalid.
func ParseCursor(body []byte, own uint64) (Cursor, bool) {
	var next uint64
	var created int64
	_, err := fmt.Sscanf(string(body[:min(len(body), 64)]), "armed %d %d", &next, &created)
	c := Cursor{Next: next, Created: time.Unix(0, created).UTC()}
	return c, err == nil && c.String() == string(body) && next > 0 && next <= own
}
