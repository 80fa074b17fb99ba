package role

import (
	"context"
	"errors"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Event is the end of a request about an alarm: a value of this file's types.
type Event interface {
	// record records the event in the alarm, and returns the next step.
	record(a *Alarm, s Situation) Step
}

// Handle records the end of a request, and returns the next step.
func (a *Alarm) Handle(e Event, s Situation) Step { return e.record(a, s) }

type (
	// Published is the event that the timers' stream has answered the publish of a firing or an outcome, or has not
	// answered in time.
	Published jsapi.Reply
	stateRead struct { // the state of the timer was read, or could not be read
		state timer.State
		err   error
	}
	roundsRead struct { // the earlier rounds were read, or could not be read
		settled bool // they are settled
		removed bool // no entry of an earlier round is left
		err     error
	}
	runRead struct { // the first set of the run was read, or could not be read
		start runStart // after an error, the progress of the read
		err   error
	}
	entriesRemoved struct { // entries were removed, or could not be removed
		earlierRemoved bool // no entry is left before the last one that was to be removed
		paused         bool // before that, the series was paused: see Lane.Fail
		err            error
	}
)

// Request returns the request that the alarm's present state needs, for the steps Read and Remove. It removes the
// entries of a settled timer. Of a pending timer, it reads whether the earlier rounds are settled, or when its run
// began. Otherwise, it reads the timer's state. The request may run on any goroutine.
func (a *Alarm) Request(series uint64) func(context.Context) Event {
	s, subject, generation := a.lane.Stream, a.Subject, a.Generation
	switch {
	case a.state >= arrived:
		r := a.removal
		return func(ctx context.Context) Event {
			var e entriesRemoved
			if r.failure != nil {
				e.paused, e.err = s.countFailure(ctx, *r.failure)
			}
			if e.err == nil {
				e.earlierRemoved, e.err = s.removeEntries(ctx, subject, generation, r)
			}
			return e
		}
	case a.HasBody() && a.Debounced():
		known := a.runStart()
		return func(ctx context.Context) Event {
			start, err := s.readRun(ctx, subject, generation, known)
			return runRead{start, err}
		}
	case a.HasBody():
		a.earlier = earlierRead
		return func(ctx context.Context) Event {
			settled, removed, err := s.readEarlierRounds(ctx, subject, series, generation)
			return roundsRead{settled, removed, err}
		}
	}
	read := s.readState
	if a.state == unread && series > 0 {
		read = s.readRoundState
	}
	a.state = doubt
	return func(ctx context.Context) Event {
		state, err := read(ctx, subject, generation)
		return stateRead{state, err}
	}
}

// wins reports whether the answer proves that the stream has stored our publish, which expected a generation to be the
// last entry.
func (p Published) wins(generation uint64) bool {
	return jsapi.Reply(p).Outcome() == jsapi.Stored && p.Ack.Sequence > generation
}

// unclear reports whether an entry may have been stored, by this publish or by another one.
func (p Published) unclear() bool {
	outcome := jsapi.Reply(p).Outcome()
	return !outcome.NotStored() || outcome == jsapi.Conflict || outcome == jsapi.Undecided
}

func (p Published) record(a *Alarm, _ Situation) Step {
	if a.state >= arrived {
		return p.recordOutcome(a)
	}
	if p.wins(a.Generation) {
		if a.firing == missedRound {
			a.missed(p.Ack.Sequence)
			return a.countMissed(Step{Kind: Remove})
		}
		a.firingStored(p.Ack.Sequence)
		if a.firing == lastFiring && a.before != unknownBefore { // no entry lies between: the firing expected the generation
			a.removal.firing = p.Ack.Sequence
		}
		return a.countMissed(Step{Kind: Deliver})
	}
	if p.unclear() {
		a.state = doubt
	}
	switch outcome := jsapi.Reply(p).Outcome(); {
	case p.Err != nil:
		return Step{Kind: Repeat, Err: p.Err}
	case outcome == jsapi.TooLarge:
		return Step{Kind: Dead, Problem: a.tooLargeToFire()}
	case outcome == jsapi.Conflict:
		return Step{Kind: Read}
	case p.unclear():
		return Step{Kind: BackOff}
	}
	return Step{Kind: BackOff, Reason: p.Ack.Description}
}

func (p Published) recordOutcome(a *Alarm) Step {
	switch {
	case p.wins(a.removal.entry):
		a.state, a.removal.entry, a.removal.reach, a.removal.outcome = settled, p.Ack.Sequence, below, ""
	case jsapi.Reply(p).Outcome() == jsapi.Conflict:
		// The outcome is already recorded, or a client has set or cancelled the timer. If another alarm has recorded the
		// outcome, that alarm counts the missed occurrences. If a client has changed the timer, nobody counts them: the
		// conflict does not show which entry came first.
		a.removal.outcome, a.skipped = "", 0
	case p.unclear():
		return Step{Kind: Repeat, Err: p.Err}
	default:
		a.removal.outcome = "" // the stream refuses the outcome; the settled entries are removed without an outcome
	}
	return a.countMissed(Step{Kind: Remove})
}

// A sweep pass waits for the timers that it has found. If such a timer waited for an earlier round that only a later
// pass finds, the pass would never end. So the timer is dropped, and a later pass removes the remaining entries.
func (e entriesRemoved) record(a *Alarm, _ Situation) Step {
	if e.err == nil {
		a.lane.removed(a, e.earlierRemoved)
	}
	if e.err == nil || errors.Is(e.err, errUnsettled) && a.Swept() {
		return Step{Kind: Drop, Paused: e.paused}
	}
	return Step{Kind: Repeat, Err: e.err, Paused: e.paused}
}

func (e roundsRead) record(a *Alarm, s Situation) Step {
	switch {
	case e.err != nil:
		a.state = doubt // its own entry may have been removed
		return Step{Kind: Repeat, Err: e.err}
	case !e.settled && s.Due.After(s.Now):
		return Step{Kind: Hold, At: s.Due} // the entries are read again when the timer is due
	case !e.settled:
		return Step{Kind: BackOff}
	}
	a.settleEarlierRounds(e.removed)
	return Step{Kind: Continue}
}

func (e runRead) record(a *Alarm, _ Situation) Step {
	if e.err != nil {
		return a.runNotRead(e.start, e.err)
	}
	a.runWasRead(e.start)
	return Step{Kind: Continue, At: leader.At(a.FiresAt())}
}

// A timer in doubt takes the state that was read.
func (e stateRead) record(a *Alarm, s Situation) Step {
	found := e.state
	if e.err != nil {
		return Step{Kind: Repeat, Err: e.err}
	}
	if found.Entry.Kind == entry.Unproven {
		a.lane.ReadKeys(s.Local)
	}
	switch behind := found.EndsBelow(a.Generation); {
	case !behind:
		a.behindSince = time.Time{}
	case a.behindSince.IsZero():
		a.behindSince = s.Local
	default:
		found.EndConfirmed = s.Local.Sub(a.behindSince) >= timer.StaleFor
	}
	next := a.judge(found)
	switch next.Kind {
	case Drop:
		if a.Swept() && !found.NoEntry && !found.Entry.Debounced() {
			a.settle(settled)
			a.removal = removal{entry: found.Sequence, reach: below} // entries before the last one may be left
			return Step{Kind: Remove}
		}
	case Restart:
		next.Content = a.restart(found.Entry, found.Message.Data, s)
		if found.IsFirst {
			a.settleEarlierRounds(true)
		}
	case Deliver:
		if !a.lane.take(a) {
			return a.waitForOther(s.Now)
		}
		a.continueFiring(found)
		next.Content = &Content{found.Entry.Fired(), found.Entry.Problem, found.Message.Data}
	}
	return next
}

// restart makes a timer pending, with the content of its own entry.
func (a *Alarm) restart(e entry.Entry, body []byte, s Situation) *Content {
	a.state = pending
	a.takeEntry(e)
	if e.Debounced() && s.Due.Before(leader.At(e.Due)) { // Delay-Max-Wait bounds the marker's due time, not the entry's
		e.Due = s.Due.Stamp()
	}
	return &Content{e.Request, e.Problem, body}
}

// judge returns the next step of a timer, given its state. If the stream ends below the generation, the leader may be
// deposed. Then judge waits for State.EndConfirmed, unless the stream was created after the generation was stored.
func (a *Alarm) judge(found timer.State) Step {
	e, drop := found.Entry, Step{Kind: Drop}
	switch {
	case found.EndsBelow(a.Generation) && !found.EndConfirmed && !found.Created.After(a.At),
		found.Sequence > a.Generation && e.Kind == entry.Unproven:
		return Step{Kind: BackOff}
	case found.NoEntry, found.Sequence < a.Generation:
		return drop // the generation was removed, or a power cut or a restore has lost it
	case found.Sequence == a.Generation:
		if !found.At.Equal(a.At) || e.Kind != entry.Set {
			return drop // after a restore, another entry has the sequence; or the key of the entry is unknown
		}
		return Step{Kind: Restart}
	case !e.Fires(a.Generation), found.Settled:
		return drop // another set, a cancel or an outcome; or the firing of a settled round
	}
	if id, err := message.ParseID(e.Fired().ID); err == nil && !id.At.Equal(a.At) {
		return drop // the stream was deleted or restored, and another entry has the sequence of the generation
	}
	return Step{Kind: Deliver}
}
