package role

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
)

// state is the state of an alarm. In the states before fired, no firing is known.
type state int

const (
	copyable state = iota // of a marker: no entry was read yet, and any replica may be asked
	unread                // of a marker: the replicas have not shown the entry, and the leader was not asked yet
	doubt                 // the state of the timer must be read from the leader
	pending               // no firing or cancel is known, and the body is in memory
	replaced              // like pending, but the worker has read an entry that replaces the timer
	fired                 // the leader has stored the firing
	arrived               // the fired message has arrived; another instance that finds the entries would deliver it again
	settled               // the message needs no further delivery, but entries may have to be removed
)

// Alarm is the state of a named timer in a worker's memory, next to its message. Only the worker's loop uses it. The
// exported fields do not change.
type Alarm struct {
	Subject    string    // of the timer's entries
	Generation uint64    // the sequence of the set
	At         time.Time // when the set was stored
	Size       int       // of the body, in bytes

	lane    *Lane
	key     string
	token   string // the token of the request that set the timer: see entry.Pending
	forged  bool   // the own entry claims to be a broker's, and has no valid seal
	state   state
	before  before // what is known about the entries before the set
	removal removal
	round
	debounce

	behindSince time.Time // local; since when the leader reports a last sequence below the generation; or zero
	batch       *Batch    // the batch of the sweep that found the timer; nil if a lane has read it
}

// before is what is known about the entries of the subject before a set.
type before int

const (
	unknownBefore before = iota
	cleared              // no entry is left, unless a killed server has forgotten its removal
	noneBefore           // the publish of the set expected no entry, so there was none
)

// round is the part of an alarm for the rounds of a series.
type round struct {
	series     *entry.Series // nil for a timer that does not recur
	earlier    earlier
	previous   uint64     // the generation whose firing is the own entry, unless known to be settled; or zero
	replacedAt time.Time  // when the entry was stored that the alarm's own entry replaced; zero for none
	next       uint64     // the sequence of the entry that replaced the alarm's own entry; zero for none
	skipped    int        // number of missed occurrences that are not counted yet
	firing     firingKind // the kind of the entry that the worker stores when the timer is due
}

// earlier is what is known about the earlier rounds of a series.
type earlier int

const (
	earlierSettled earlier = iota // they are settled, or there are none
	earlierRemoved                // they are settled, and no entry is left before the alarm's own entry
	earlierAwaited                // they are not known to be settled, so this round must not fire yet
	earlierRead                   // like earlierAwaited; the worker has begun to read their entries
)

// removal describes the removal of a settled timer's entries.
type removal struct {
	entry   uint64 // the sequence that reach refers to; zero if no entry is to be removed
	reach   reach
	outcome entry.Outcome // the outcome to record in an entry after the others; empty for none

	failure *change.Change // counts a dead letter before the entries are removed; nil for none

	// The following fields may save reads.
	probablyOldest bool   // the entry is probably the oldest entry of its subject; a replica can confirm that
	firing         uint64 // the sequence of the firing, if it directly follows the generation in the subject; or zero
	cancelled      uint64 // if the entry is a cancel, the entry directly before it; zero if unknown
}

// reach is the set of entries that a removal removes.
type reach int

const (
	upTo     reach = iota // the entries up to removal.entry
	below                 // the entries before removal.entry
	onlyThis              // removal.entry
)

// firingKind is the kind of the entry that is stored when a timer is due.
type firingKind int

const (
	lastFiring  firingKind = iota // the timer fires for the last time
	nextRound                     // a round fires, and the next round is set
	missedRound                   // a round was missed, and the next round is set
)

// takeEntry records the content of the alarm's own entry: the series, the token, and the previous round.
func (a *Alarm) takeEntry(e entry.Entry) {
	a.series, a.token = e.Series, e.Token
	a.forged = e.Problem != nil && e.Problem.Code == message.BadInternal
	if a.maxWait, a.ownDue = e.MaxWait, e.Due; e.Debounced() && !e.First {
		a.before = unknownBefore // before a later set, the first set stays until the run has ended
	}
	a.previous, a.earlier, a.replacedAt = e.Previous(), earlierSettled, time.Time{}
	if e.Replaced > 0 {
		id, _ := message.ParseID(e.ReplacedRequest.ID) // zero if the id is invalid
		a.earlier, a.replacedAt = earlierAwaited, id.At
	}
}

// pending returns the timer with the given request.
func (a *Alarm) pending(r message.Request) entry.Pending {
	return entry.Pending{Request: r, Token: a.token, Series: a.series}
}

// isPending reports whether the timer is pending, and the worker has read no later entry of its subject.
func (a *Alarm) isPending() bool { return a.state == pending }

// HasBody reports whether the timer's body is in memory, and no firing is known.
func (a *Alarm) HasBody() bool { return a.state == pending || a.state == replaced }

// NeedsMarker reports whether a level gets a marker of the timer instead of its message: no firing is known.
func (a *Alarm) NeedsMarker() bool { return a.state < fired }

// MarkerHeader returns the header of the marker that represents the timer in a level.
func (a *Alarm) MarkerHeader(r message.Request) message.Header {
	m := entry.Marker{Request: r, Key: a.key, Size: a.Size}
	if a.Debounced() {
		m.RunStart = a.oldestKept()
	}
	return m.Header()
}

// awaitsEarlierRounds reports whether the round must not fire yet.
func (a *Alarm) awaitsEarlierRounds() bool { return a.earlier >= earlierAwaited }

// settleEarlierRounds records that the earlier rounds are settled. Removed is true if no entry is left before the
// alarm's own entry. Then only the own entry must be removed.
func (a *Alarm) settleEarlierRounds(removed bool) {
	if a.previous, a.earlier = 0, earlierSettled; removed {
		a.earlier = earlierRemoved
	}
}

// NeedsNoWork reports whether the timer is settled, and no entry is to be removed.
func (a *Alarm) NeedsNoWork() bool { return a.state == settled && a.removal.entry == 0 }

// MayRepeat reports whether another instance that finds the entries would deliver the message again.
func (a *Alarm) MayRepeat() bool { return a.state == arrived }

// Swept reports whether the sweep found the timer.
func (a *Alarm) Swept() bool { return a.batch != nil }

// AskLeader records that replicas do not answer, so the leader is asked for the timer's entry.
func (a *Alarm) AskLeader() {
	if a.state == copyable {
		a.state = unread
	}
}

// follow records that the lane has read a later entry of the subject. It reports whether that entry replaces the timer,
// which was pending: the next step may be another one now. A fired timer continues. A later entry that may be the
// firing puts a pending timer in doubt.
func (a *Alarm) follow(e entry.Entry) (replaces bool) {
	switch {
	case !a.HasBody():
		return false
	case e.Kind == entry.Unproven, e.Fires(a.Generation):
		a.state = doubt
		return false
	}
	a.state = replaced
	return true
}

// settle ends the alarm's part in deliveries: only entries may have to be removed.
func (a *Alarm) settle(as state) {
	a.state = as
	a.lane.settle(a)
}

// withdraw settles a replaced timer: its entry is to be removed. If that entry may have ended a run, the entries before
// it are to be removed first. If the entry is also the firing of the previous round, it stays until that round is
// settled. The first set of a run stays until the run has ended.
func (a *Alarm) withdraw() Step {
	keep := a.previous != 0 || a.mayStartRun()
	if a.settle(settled); keep {
		return Step{Kind: Drop}
	}
	if a.removal.entry, a.removal.probablyOldest = a.Generation, a.endsRun; !a.endsRun {
		a.removal.reach = onlyThis
	}
	return Step{Kind: Remove}
}

// Withdrawn reports whether the timer was replaced, and its own entry is to be removed.
func (a *Alarm) Withdrawn() bool { return a.state == settled && a.removal.entry == a.Generation }

// PreviousRemoved records that the set before the alarm's entry, a cancel, is being removed. If the cancel stays for a
// while, nothing else is to be removed now: the sweep removes the cancel, and all entries before it.
func (a *Alarm) PreviousRemoved() {
	if a.removal.reach == below {
		a.removal.entry = 0
	}
}

// firingStored records that the leader has stored the firing as the given entry. If the firing is also the set of the
// next round, the firing stays: after the delivery, the worker removes the entries up to the set of the fired round.
func (a *Alarm) firingStored(entry uint64) {
	if a.state, a.removal.entry = fired, entry; a.firing == lastFiring {
		return
	}
	a.removal.entry, a.next = a.Generation, entry
	if a.earlier == earlierRemoved {
		a.removal.reach = onlyThis
	}
}

// missed settles a round that was missed: its own entry is to be removed. Next is the sequence of the next round's
// entry. For the last round of a series, next is zero, and the outcome is recorded.
func (a *Alarm) missed(next uint64) {
	a.settle(settled)
	if a.removal.entry, a.next = a.Generation, next; next == 0 {
		a.removal.outcome = entry.Missed
	}
}

// continueFiring continues a firing that this or another instance has stored.
func (a *Alarm) continueFiring(found timer.State) {
	if a.firing = lastFiring; found.Entry.Kind != entry.Fired {
		a.firing = nextRound
	}
	a.token = found.Entry.Token
	a.firingStored(found.Sequence)
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
	switch {
	case at == DeadLetters && a.state < fired: // the set was invalid, or its firing was too large
		a.removal.entry = a.Generation
	case at == Level && a.state == replaced: // replaced while its marker was sent
		return a.withdraw().Kind == Remove
	case at == Level && a.state == pending && a.before != noneBefore && a.previous == 0: // the marker is stored
		a.removal.entry, a.removal.reach, a.removal.probablyOldest = a.oldestKept(), below, true
		a.settle(settled)
		return a.removal.entry != 0
	}
	if a.removal.entry == 0 && a.removal.failure == nil || a.state >= arrived {
		return false
	}
	a.removal.outcome = map[Destination]entry.Outcome{
		Target: entry.Delivered, Level: entry.Retrying, RetryLane: entry.Retrying, DeadLetters: entry.Dead,
	}[at]
	if a.firing == nextRound || a.forged {
		// A series that continues has no outcome. Neither has a forged entry: if its writer is an active broker with another
		// secret, that broker would take the outcome for forged, and the two would answer each other for ever.
		a.removal.outcome = ""
	}
	a.settle(arrived)
	return true
}

// End must be called when the alarm leaves memory. It releases the lane's claim on the firing, if there is one.
func (a *Alarm) End() {
	a.lane.leave(a)
	if a.batch != nil {
		a.batch.endOne()
	}
}
