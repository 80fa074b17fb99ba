package role

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Stage is the progress of a timer's firing.
type Stage int

// The stages. Before Fired, no firing is known.
const (
	Pending Stage = iota // no firing or cancel is known, and the body is in memory
	Doubt                // the state must be read from the stream
	Fired                // the leader has stored the firing
	Settled              // the alarm's message needs no further delivery, but entries may have to be removed
)

// Alarm is the state of a named timer in a worker's memory, next to its message. Only the worker's loop uses it.
type Alarm struct {
	Subject    string // of the timer's entries
	key        string
	Generation uint64    // the sequence of the set
	At         time.Time // when the set was stored
	Size       int       // of the body, in bytes
	Stage      Stage
	Superseded bool // the timer was pending when the worker read an entry that replaces it
	First      bool // the publish of the set expected no entry of the subject, so there was none
	Loaded     bool // the worker has reserved memory for the body, in order to read the timer

	LoadedBytes int // size of the body and the client's headers for which the worker has reserved memory

	// Fresh means that the alarm belongs to a marker, and no entry of its subject was read yet. The first read of an entry
	// may go to a replica. The worker clears Fresh to read from the leader.
	Fresh   bool
	unread  bool // the alarm belongs to a round's marker, no copy has shown the entry, and FirstRead was not called
	cleared bool // no entry is left before the set, unless a killed server has forgotten its removal

	// The following fields are for rounds of a series.
	PreviousRound       uint64        // the generation whose firing is the own entry, unless known to be settled; or zero
	AwaitsEarlierRounds bool          // this round must not fire yet: the earlier rounds are not known to be settled
	replacedAt          time.Time     // when the entry was stored that the alarm's own entry replaced; zero for none
	EarlierRoundsRead   bool          // the worker has begun to read whether the earlier rounds are settled
	earlierRemoved      bool          // the earlier rounds were found settled, and no entry is left before the alarm's own
	nextEntry           uint64        // the sequence of the entry that replaced the alarm's own entry; zero for none
	series              *entry.Series // nil for a timer that does not recur
	Skipped             int           // number of missed occurrences that are not counted yet

	firing firingKind // the kind of the entry that the worker stores when the timer is due
	token  string     // the token of the request that set the timer: see entry.Pending

	run     run  // the debounced sets of which only the last one fires; see run
	endsRun bool // the set may have ended a run; the run's entries must be removed before the set's own
	Removal

	arrived     bool      // the message itself, and not only a marker, has arrived at a Destination
	behindSince time.Time // local; since when the leader reports a last sequence below the generation; or zero
	batch       *Batch    // the batch of the sweep that found the timer; nil if a lane has read it
}

// Removal describes the removal of a settled timer's entries.
type Removal struct {
	Entry          uint64        // remove the entries up to this sequence; zero for none
	Keep           bool          // remove only the entries before Entry
	Outcome        entry.Outcome // the outcome to record in an entry after Entry; empty for none
	OnlyEntry      bool          // remove only Entry
	ProbablyOldest bool          // Entry is probably the oldest entry of its subject; a replica can confirm that
	Firing         uint64        // sequence of the firing, if it directly follows the generation in the subject; or zero

	Cancelled uint64 // if Entry is a cancel, the entry directly before it; zero if unknown
}

// firingKind is the kind of the entry that is stored when a timer is due.
type firingKind int

const (
	lastFiring  firingKind = iota // the timer fires for the last time
	nextRound                     // a round fires, and the next round is set
	missedRound                   // a round was missed, and the next round is set
)

// TakeEntry records the content of the alarm's own entry: the series, the token, and the previous round.
func (a *Alarm) TakeEntry(e entry.Entry) {
	a.series, a.token = e.Series, e.Token
	a.takeRun(e)
	a.PreviousRound, a.AwaitsEarlierRounds, a.replacedAt = e.Previous(), e.Replaced > 0, time.Time{}
	if a.AwaitsEarlierRounds {
		id, _ := message.ParseID(e.ReplacedRequest.ID) // zero if the id is invalid
		a.replacedAt = id.At
	}
}

// TakeState is like TakeEntry, for an entry that was read from the leader. If no entry is left before that entry, it
// also records that the earlier rounds are settled.
func (a *Alarm) TakeState(state timer.State) {
	if a.TakeEntry(state.Entry); state.IsFirst {
		a.SettleEarlierRounds(true)
	}
}

// pending returns the timer with the given request.
func (a *Alarm) pending(r message.Request) entry.Pending {
	return entry.Pending{Request: r, Token: a.token, Series: a.series}
}

// NeedsMarker reports whether a level gets a marker of the timer instead of its message: no firing is known.
func (a *Alarm) NeedsMarker() bool { return a.Stage < Fired }

// MarkerHeader returns the header of the marker that represents the timer in a level.
func (a *Alarm) MarkerHeader(r message.Request) message.Header {
	return entry.Marker{Request: r, Key: a.key, Size: a.Size}.Header()
}

// FirstRead reports whether the worker must call ReadRoundState instead of ReadState: it has not read the entries of
// this round. Later calls return false.
func (a *Alarm) FirstRead() bool {
	first := a.unread
	a.unread = false
	return first
}

// SettleEarlierRounds records that the earlier rounds are settled. EarlierRemoved is true if no entry is left before
// the alarm's own entry. Then only the own entry must be removed.
func (a *Alarm) SettleEarlierRounds(earlierRemoved bool) {
	a.PreviousRound, a.AwaitsEarlierRounds, a.earlierRemoved = 0, false, earlierRemoved
}

// NeedsNoWork reports whether the timer is settled, and no entry is to be removed.
func (a *Alarm) NeedsNoWork() bool { return a.Stage == Settled && a.Entry == 0 }

// ReplacedBy reports whether e, a later entry of the subject, replaces the timer. The timer's firing does not replace
// it, and neither does an entry that may be the firing.
func (a *Alarm) ReplacedBy(e entry.Entry) bool {
	return e.Kind != entry.Unproven && !e.Fires(a.Generation)
}

// Supersede records that the worker has read an entry that replaces the timer, and reports whether the timer was
// pending. If the timer was not pending, Supersede records nothing: a fired timer continues, and the worker examines a
// timer in doubt.
func (a *Alarm) Supersede() (pending bool) {
	if a.Stage != Pending {
		return false
	}
	a.Superseded = true
	return true
}

// MayHaveFired records that the worker has read a later entry, which may be the firing.
func (a *Alarm) MayHaveFired() {
	if a.Stage == Pending {
		a.Stage = Doubt
	}
}

// Withdraw settles a superseded timer: its entry is to be removed. If that entry may have ended a run, the entries
// before it are to be removed first. If the entry is also the firing of the previous round, it stays until that round
// is settled. The first set of a run stays until the run has ended.
func (a *Alarm) Withdraw() {
	a.Stage = Settled
	if a.PreviousRound == 0 && !a.mayStartRun() {
		a.Entry, a.OnlyEntry, a.ProbablyOldest = a.Generation, a.OnlyEntry || !a.endsRun, a.endsRun
	}
}

// FiringStored records that the leader has stored the firing as the given entry. If the firing is also the set of the
// next round, the firing stays: after the delivery, the worker removes the entries up to the set of the fired round.
func (a *Alarm) FiringStored(entry uint64) {
	if a.Stage, a.Entry = Fired, entry; a.firing != lastFiring {
		a.Entry, a.OnlyEntry, a.nextEntry = a.Generation, a.OnlyEntry || a.earlierRemoved, entry
	}
}

// missed settles a round that was missed: its own entry is to be removed. Next is the sequence of the next round's
// entry. For the last round of a series, next is zero, and the outcome is recorded.
func (a *Alarm) missed(next uint64) {
	if a.Stage, a.Entry, a.nextEntry = Settled, a.Generation, next; next == 0 {
		a.Outcome = entry.Missed
	}
}

// Destination is the place where a timer's message has arrived.
type Destination int

// The destinations.
const (
	Target    Destination = iota // also for a message that was dropped
	Level                        // a level has stored the marker, or a fired timer's message that waits for its rate
	RetryLane                    // also the lane of a pause
	DeadLetters
)

// Arrived records the destination at which the message has arrived. It reports whether entries are to be removed.
func (a *Alarm) Arrived(at Destination) (remove bool) {
	if at == DeadLetters && a.Stage < Fired { // the set was invalid, or its firing was too large
		a.Entry = a.Generation
	}
	if a.Stage == Pending && at == Level && !a.First && a.PreviousRound == 0 { // the marker is stored
		a.Entry, a.Keep, a.ProbablyOldest, a.Stage = a.oldestKept(), true, true, Settled
		return a.Entry != 0
	}
	if a.Entry == 0 || a.Stage == Settled {
		return false
	}
	switch at {
	case DeadLetters:
		a.Outcome = entry.Dead
	case Target:
		a.Outcome = entry.Delivered
	default:
		a.Outcome = entry.Retrying
	}
	if a.firing == nextRound {
		a.Outcome = "" // a series that continues has no outcome
	}
	a.Stage, a.arrived = Settled, true
	return true
}

// MayRepeat reports whether another instance that finds the entries would deliver the message again.
func (a *Alarm) MayRepeat() bool { return a.arrived && !a.Keep }

// Swept reports whether the sweep found the timer.
func (a *Alarm) Swept() bool { return a.batch != nil }

// End must be called when the alarm leaves memory.
func (a *Alarm) End() {
	if a.batch != nil {
		a.batch.endOne()
	}
}
