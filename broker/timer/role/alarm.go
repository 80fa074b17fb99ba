package role

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Stage is the progress of a timer's firing.
type Stage int

// The stages, in order.
const (
	Pending Stage = iota // no firing or cancel is known, and the body is in memory
	Doubt                // only the last entry of the subject can show the state
	Fired                // the leader has stored our firing
	Settled              // the message is delivered, in a retry lane, or among the dead letters
)

// Alarm is the state of a named timer in a worker's memory, next to its message. It belongs to the worker's loop.
type Alarm struct {
	Subject    string // delaytimer.<key>.<target>
	key        string
	Generation uint64 // of the set
	At         time.Time
	Size       int // of the body
	Stage      Stage
	Superseded bool // a later entry of its subject was read
	First      bool // its entry was the first of the subject
	Loaded     bool // its body was read for its marker, and is accounted

	fresh   bool // of a marker: no entry of its subject was read yet, and a copy of its entry suffices
	unread  bool // of a round's marker: no entry of its subject was read from the leader yet
	cleared bool // earlier entries were removed when its marker was stored, or there were none

	Follows uint64    // of a series: the generation whose firing its entry records, which may be on its way; zero for none
	Later   bool      // of a series: there were rounds before it, which must be settled first
	before  time.Time // of a series: when the entry was stored that its own replaced; zero for none
	asked   bool      // of a series: the worker asked, before the round was due, whether those are settled
	alone   bool      // of a series: no entry is left before its own
	next    uint64    // of a series: the entry that replaced its own; zero for none
	ends    ending
	recurs  *entry.Series // the pending round; nil for a timer that fires once
	word    string        // the request ID of the client that has set it
	Left    int           // of a series: the number of occurrences that the next stored entry leaves out

	run    run  // of debounced sets that it belongs to
	closes bool // entries of a run may be left before it, which must go first
	Removal

	arrived bool      // somewhere other than in a level
	behind  time.Time // local; since when the leader says that the stream ends before the generation; zero if it does not
	batch   *Batch    // of the sweep that has found it; nil if a lane has it
}

// Removal describes the removal of entries once a timer is settled.
type Removal struct {
	Entry uint64        // the last entry to remove; zero for none
	Keep  bool          // remove only the entries before it
	What  entry.Outcome // the outcome to record in an entry behind it; empty for none
	Alone bool          // the entries before it stay
	Armed bool          // its marker is stored; mostly no entry is left before its own
	Fired uint64        // its firing, if no entry lies between the generation and that; zero if unknown
}

// ending is the kind of entry that is stored when a timer is due.
type ending int

const (
	over   ending = iota // the timer fires, for the last time
	goesOn               // of a series: a round fires, and the next is set
	passes               // of a series: a round was missed, and the next is set
)

// Succeeds notes what an alarm's own entry contains about the timer, and about the rounds before it.
func (a *Alarm) Succeeds(e entry.Entry) {
	a.recurs, a.word = e.Recurs, e.Word
	a.succeedsRun(e)
	a.Follows, a.Later, a.before = e.Follows(), e.Replaced > 0, time.Time{}
	if !a.Later {
		return
	}
	if id, err := message.ParseID(e.Before.ID); err == nil {
		a.before = id.At
	}
}

// Read is Succeeds for an entry that was read because its marker is due.
func (a *Alarm) Read(see timer.State) {
	if a.Succeeds(see.Entry); see.Alone {
		a.BeforeSettled(true)
	}
}

// pending returns the timer of a request that is in memory.
func (a *Alarm) pending(r message.Request) entry.Pending {
	return entry.Pending{Request: r, Word: a.word, Recurs: a.recurs}
}

// Marker reports whether the timer is sent to a level as a marker: it has not fired.
func (a *Alarm) Marker() bool { return a.Stage < Fired }

// MarkerHeader returns the header of the marker that represents the timer in a level.
func (a *Alarm) MarkerHeader(r message.Request) message.Header {
	return entry.Marker{Request: r, Key: a.key, Size: a.Size}.Header()
}

// Fresh reports whether the alarm is that of a marker, and no entry of its subject was read yet: then a copy of its
// entry suffices, which any replica of the stream may return.
func (a *Alarm) Fresh() bool { return a.fresh }

// NotFresh makes the worker read the entry from the leader of the stream.
func (a *Alarm) NotFresh() { a.fresh = false }

// FirstLook reports, once, whether the alarm is that of a round of which no entry was read yet.
func (a *Alarm) FirstLook() bool {
	first := a.unread
	a.unread = false
	return first
}

// Asked notes that the worker asks whether the rounds before are settled.
func (a *Alarm) Asked() { a.asked = true }

// BeforeSettled notes that the rounds before are settled, and whether no entry is left before its own: then only its
// own entry must be removed.
func (a *Alarm) BeforeSettled(alone bool) {
	a.Follows, a.Later, a.alone = 0, false, alone
}

// Nothing reports whether an entry needs no work.
func (a *Alarm) Nothing() bool { return a.Stage == Settled && a.Entry == 0 }

// GivesWay reports whether a later entry of its subject replaces the timer. Its own firing does not. An entry that may
// be its firing does not yet.
func (a *Alarm) GivesWay(e entry.Entry) bool {
	return e.Kind != entry.Unproven && !e.Fires(a.Generation)
}

// Supersede notes that a later entry has been read, and reports whether that matters: a fired timer continues, and one
// in doubt is examined.
func (a *Alarm) Supersede() (matters bool) {
	if a.Stage != Pending {
		return false
	}
	a.Superseded = true
	return true
}

// MayHaveFired notes that a later entry has been read that may record the firing.
func (a *Alarm) MayHaveFired() {
	if a.Stage == Pending {
		a.Stage = Doubt
	}
}

// Withdraw settles a superseded timer with no message on its way: only its entry is to be removed. If the entry is also
// the firing of the round before, it is removed when that round is settled. The first set of a run stays until the run
// has ended.
func (a *Alarm) Withdraw() {
	a.Stage = Settled
	if a.Follows == 0 && !a.mayBegin() {
		a.Entry, a.Alone = a.Generation, a.Alone || !a.closes
	}
}

// Won notes that the leader has stored our firing, at a sequence. If the firing is also the set of the next round, it
// stays, and the round's own entry is removed once the round is settled.
func (a *Alarm) Won(entry uint64) {
	if a.Stage, a.Entry = Fired, entry; a.ends != over {
		a.Entry, a.Alone, a.next = a.Generation, a.Alone || a.alone, entry
	}
}

// missed settles a round that was missed: its own entry is to be removed. Next is the entry of the next round. It is
// zero for the last round of a series, whose outcome is recorded.
func (a *Alarm) missed(next uint64) {
	if a.Stage, a.Entry, a.next = Settled, a.Generation, next; next == 0 {
		a.What = entry.Missed
	}
}

// Destination is the place where a timer's message has arrived.
type Destination int

// The destinations.
const (
	Target    Destination = iota // or none, because the message was settled otherwise
	Level                        // as a marker
	RetryLane                    // or the lane of a pause
	DeadLetters
)

// Arrived notes that the message has arrived somewhere, and reports whether an entry is to be removed.
func (a *Alarm) Arrived(at Destination) (remove bool) {
	if at == DeadLetters && a.Stage < Fired { // it was no valid timer
		a.Entry = a.Generation
	}
	if a.Stage == Pending && at == Level && !a.First && a.Follows == 0 { // its marker is stored
		a.Entry, a.Keep, a.Armed, a.Stage = a.keepsFrom(), true, true, Settled
		return a.Entry != 0
	}
	if a.Entry == 0 || a.Stage == Settled {
		return false
	}
	switch at {
	case DeadLetters:
		a.What = entry.Dead
	case Target:
		a.What = entry.Delivered
	default:
		a.What = entry.Retrying
	}
	if a.ends == goesOn {
		a.What = "" // a series that continues has no outcome
	}
	a.Stage, a.arrived = Settled, true
	return true
}

// Again reports whether the message has arrived, and an instance that finds its entries would send it again.
func (a *Alarm) Again() bool { return a.arrived && !a.Keep }

// Swept reports whether the sweep has found the timer.
func (a *Alarm) Swept() bool { return a.batch != nil }

// End notes that the alarm has left memory.
func (a *Alarm) End() {
	if a.batch != nil {
		a.batch.ended()
	}
}
