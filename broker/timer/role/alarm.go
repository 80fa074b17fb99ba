package role

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Stage is how far the firing of a timer has come.
type Stage int

// The stages, in order.
const (
	Pending Stage = iota // nobody has decided, as far as is known, and the body is in memory
	Doubt                // only the last entry of the subject can tell what is true
	Fired                // the leader has stored that we fire it
	Settled              // it has been delivered, or is in a retry lane or among the dead letters
)

// Alarm is what a worker has in memory of a named timer, besides its message. It belongs to the worker's loop.
type Alarm struct {
	Subject    string // delaytimer.<key>.<target>
	key        string
	Generation uint64 // of the set
	At         time.Time
	Size       int // of the body
	Stage      Stage
	Superseded bool // a later entry of its subject was read
	First      bool // there was nothing on the subject before it
	Loaded     bool // its body was read for its marker, and is accounted

	fresh   bool // of a marker: nothing of its subject was read yet, and a copy of its entry will do
	unread  bool // of a round's marker: nothing of its subject was read from the leader yet
	cleared bool // what came before its entry was removed when its marker was stored, or there was nothing

	Follows uint64    // of a series: the generation that has fired with its entry, and may be on its way; zero for none
	Later   bool      // of a series: there were rounds before it, which must be settled first
	before  time.Time // of a series: when the entry was stored that its own is in place of; zero for none
	asked   bool      // of a series: whether those are settled was asked before it was due
	alone   bool      // of a series: nothing is left before its entry
	next    uint64    // of a series: the entry that is stored in place of its own; zero for none
	ends    ending
	recurs  *entry.Series // the pending round; nil for what fires once
	word    string        // of the client that has set it
	Left    int           // of a series: occurrences that are left out with what is to be stored

	run    run  // of debounced sets that it belongs to
	closes bool // entries of a run may be left before it, which must go first
	Removal

	arrived bool      // elsewhere than in a level
	behind  time.Time // local; since when the stream is said to end before the generation; zero when it is not
	batch   *Batch    // of the sweep that has found it; nil if a lane has it
}

// Removal is what is to be done to a subject once its timer is settled.
type Removal struct {
	Entry uint64        // the last of what is to be removed; zero for none
	Keep  bool          // and it stays itself
	What  entry.Outcome // to be told in an entry behind it; empty for nothing
	Alone bool          // the entries before it are not removed with it
	Armed bool          // its marker is stored; mostly nothing is left before its entry
	Fired uint64        // its firing, where nothing stands between the generation and that; zero where that is not known
}

// ending is what is stored when a timer is due.
type ending int

const (
	over   ending = iota // that it fires
	goesOn               // of a series: that a round fires, and the next
	passes               // of a series: that a round was missed, and the next
)

// Succeeds takes from an alarm's own entry what it says of the timer, and of the rounds before.
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

// Read takes from an alarm's own entry, which was read because its marker is due, what it says of the rounds before.
func (a *Alarm) Read(see timer.State) {
	if a.Succeeds(see.Entry); see.Alone {
		a.BeforeSettled(true)
	}
}

// pending is the timer of a request that is in memory.
func (a *Alarm) pending(r message.Request) entry.Pending {
	return entry.Pending{Request: r, Word: a.word, Recurs: a.recurs}
}

// Marker reports whether the timer goes into a level as a marker: it has not fired.
func (a *Alarm) Marker() bool { return a.Stage < Fired }

// MarkerHeader is the header of the marker that stands for it in a level.
func (a *Alarm) MarkerHeader(r message.Request) message.Header {
	return entry.Marker{Request: r, Key: a.key, Size: a.Size}.Header()
}

// Fresh reports whether it is that of a marker of which nothing was read yet: then a copy of its entry will do, which
// any replica of the stream may give.
func (a *Alarm) Fresh() bool { return a.fresh }

// NotFresh has it read from the leader of the stream.
func (a *Alarm) NotFresh() { a.fresh = false }

// FirstLook reports whether it is a round of which nothing was read yet. It does so once.
func (a *Alarm) FirstLook() bool {
	first := a.unread
	a.unread = false
	return first
}

// Asked notes that it is being asked whether the rounds before are settled.
func (a *Alarm) Asked() { a.asked = true }

// BeforeSettled notes that the rounds before are settled, and whether nothing is left of what came before: then there
// is nothing to remove but its own entry.
func (a *Alarm) BeforeSettled(alone bool) {
	a.Follows, a.Later, a.alone = 0, false, alone
}

// Nothing reports whether there is nothing to do about an entry.
func (a *Alarm) Nothing() bool { return a.Stage == Settled && a.Entry == 0 }

// GivesWay reports whether a later entry of its subject takes its place. Its own firing does not, and what may be that
// does not yet.
func (a *Alarm) GivesWay(e entry.Entry) bool {
	return e.Kind != entry.Unproven && !e.Fires(a.Generation)
}

// Supersede notes that a later entry has been read, and reports whether that matters: what has fired goes on, and what
// may have is looked at.
func (a *Alarm) Supersede() (matters bool) {
	if a.Stage != Pending {
		return false
	}
	a.Superseded = true
	return true
}

// MayHaveFired notes that an entry behind the set has been read which says so.
func (a *Alarm) MayHaveFired() {
	if a.Stage == Pending {
		a.Stage = Doubt
	}
}

// Withdraw settles a timer that was superseded and of which nothing is on its way: its entry alone is to be removed. An
// entry that is the firing of the round before goes when that round is settled. The first set of a run stays as long as
// the run.
func (a *Alarm) Withdraw() {
	a.Stage = Settled
	if a.Follows == 0 && !a.mayBegin() {
		a.Entry, a.Alone = a.Generation, a.Alone || !a.closes
	}
}

// Won notes that the leader has stored our firing, at a sequence. The firing of a round that is the set of the next
// stays; once the round is settled, its own entry is removed.
func (a *Alarm) Won(entry uint64) {
	if a.Stage, a.Entry = Fired, entry; a.ends != over {
		a.Entry, a.Alone, a.next = a.Generation, a.Alone || a.alone, entry
	}
}

// missed settles a round that was missed: its own entry is to be removed. Next is the entry of the next one, zero for
// none: the last one of a series is told of.
func (a *Alarm) missed(next uint64) {
	if a.Stage, a.Entry, a.next = Settled, a.Generation, next; next == 0 {
		a.What = entry.Missed
	}
}

// Destination is where a timer's message has arrived.
type Destination int

// Where a message arrives.
const (
	Target    Destination = iota // or nowhere, because it was decided otherwise
	Level                        // as a marker
	RetryLane                    // or that of a pause
	DeadLetters
)

// Arrived notes that the message has arrived elsewhere, and reports whether an entry is to be removed.
func (a *Alarm) Arrived(at Destination) (remove bool) {
	if at == DeadLetters && a.Stage < Fired { // it never was a timer
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
		a.What = "" // there is no end to tell of
	}
	a.Stage, a.arrived = Settled, true
	return true
}

// Again reports whether it has arrived, and whoever finds its entries would send it again.
func (a *Alarm) Again() bool { return a.arrived && !a.Keep }

// Swept reports whether only a sweep has found it.
func (a *Alarm) Swept() bool { return a.batch != nil }

// End notes that it has left memory.
func (a *Alarm) End() {
	if a.batch != nil {
		a.batch.ended()
	}
}
