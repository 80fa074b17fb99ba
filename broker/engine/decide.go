package engine

import (
	"log/slog"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/levels"
)

// decide.go, decide_store.go and decide_delivery.go decide the next step of a message. Their functions are pure: they
// compute the step from the lane's plan, the situation of the worker, the message and the answer, and change nothing.
// apply.go carries out the steps.
//
//	read, or taken off the wheel    nextStep; for a due message, laneKind.due
//	one of our streams answered     afterStore
//	a stream's copy was read        afterCheck
//	a delivery ended                afterDelivery

const (
	// A message may leave a level before the level's delay is over, at most lookahead earlier, so that it is on the wheel
	// in time. The lookahead must be far below the shortest level, so that messages do not circle.
	lookahead = 50 * time.Millisecond
	// hopSlack is the part of the lookahead that the publish of a hop may take. Except in holdOrSpill, a message may hop
	// into a level only if the level's delay is at most the remaining time plus hopSlack. Without hopSlack, a message with
	// a remaining time of 2h less a millisecond would take six hops.
	hopSlack = lookahead / 2
	// newerFormatRetry is the interval at which the worker offers its lane again to an instance that can read a message of
	// a newer format: see lease.Lease.Decline.
	newerFormatRetry = time.Minute
	// minSpill is the remaining time below which a message is held in memory even when memory is short.
	minSpill = 250 * time.Millisecond
)

// nextStep decides about a message that was just read, or whose time on the wheel has come.
//
//	     stored                              leaves            due
//	───────┼─────────────────────────────────┼─┼────────────────┼─────▶
//	       │◀──────── the lane's delay ────────▶│
//	                                lookahead ▶│◀  remaining time: hop, or hold if it is below the horizon
func nextStep(p plan, m moment, f *flight) step {
	if f.sent != nil {
		if f.sent.duplicate > 0 {
			return step{kind: check}
		}
		return step{kind: repeat}
	}
	if f.timer != nil {
		if s := f.timer.Next(situationOf(p, m, f)); s.Kind != role.Default {
			return timerStep(m, f, s)
		}
	}
	if f.problem != nil {
		return afterProblem(m, f)
	}
	if f.unverified() {
		if f.nextAttempt().After(m.now) || !m.proven {
			return step{kind: hold, at: f.nextAttempt()}
		}
		return step{kind: check}
	}
	if expires := f.request.Expires; m.proven && !expires.IsZero() && m.now.After(leader.At(expires)) {
		return step{kind: dead, problem: expiredProblem(f)}
	}
	attempt := f.nextAttempt()
	remaining := attempt.Sub(m.now)
	if remaining <= 0 && m.proven {
		return p.kind.due(p, m, f)
	}
	if staysUntilDue(p, m, f) {
		return holdOrSpill(p, m, f, attempt)
	}
	if hopTime := earliestHop(p, f); m.now.Before(hopTime) {
		s := holdOrSpill(p, m, f, slackEnd(hopTime, batchWindow))
		s.awaitsHop = true
		return s
	}
	level, ok := p.Ladder.Next(remaining + hopSlack)
	if !ok {
		return holdOrSpill(p, m, f, attempt)
	}
	return step{kind: hop, level: p.shorterLevel(level, f.refusedBy)}
}

// earliestHop returns the time from which on a message may leave the lane by a hop.
func earliestHop(p plan, f *flight) leader.Time { return f.storedAt().Add(p.delay - lookahead) }

// staysUntilDue reports whether the remaining time of a message is at most the horizon plus the lookahead, either now
// or at the earliest time of a hop.
func staysUntilDue(p plan, m moment, f *flight) bool {
	attempt, horizon := f.nextAttempt(), p.Ladder.Horizon()+lookahead
	return attempt.Sub(m.now) <= horizon || attempt.Sub(earliestHop(p, f)) <= horizon
}

// situationOf returns the situation at a decision about a named timer.
func situationOf(p plan, m moment, f *flight) role.Situation {
	return role.Situation{
		Now: m.now, Local: m.local, Proven: m.proven, Crowded: m.crowded,
		TimersLane: p.kind.holdsTimers(), LastLane: staysUntilDue(p, m, f),
		Stored: f.storedAt(), Due: f.nextAttempt(), Invalid: f.problem != nil, Loaded: f.loaded > 0,
	}
}

// expiredProblem returns the problem of a message that expired before it was delivered.
func expiredProblem(f *flight) *message.Problem {
	expires := f.request.Expires.UTC().Format(time.RFC3339Nano)
	if f.request.Attempts > 0 {
		return message.Problemf(message.Expired,
			"refused %d times, and not delivered before Delay-Expires %s; last error: %s",
			f.request.Attempts, expires, f.request.LastError)
	}
	return message.Problemf(message.Expired, "it was not delivered before Delay-Expires %s", expires)
}

// afterProblem decides about a message that cannot be delivered, for the reason in f.problem.
func afterProblem(m moment, f *flight) step {
	switch f.problem.Code {
	case message.UnknownKey:
		return step{kind: awaitKey}
	case message.NewerFormat:
		return step{kind: hold, at: m.now.Add(newerFormatRetry), line: &logLine{slog.LevelWarn,
			"a message in a newer format waits for a newer broker: start a newer broker, or finish the upgrade",
			[]any{"sequence", f.Sequence, "reason", f.problem.Sentence}}}
	}
	return step{kind: dead, problem: f.problem}
}

// holdOrSpill holds a message in memory until a time. In a lane without a delay, such as the intake, it moves the
// message into a level if memory is short: messages that are far from due must not stop the reading of the lane,
// because nearly due messages may follow them in the stream.
//
// The message moves into the longest level that fits. If no level fits, it moves into the shortest level, but only if
// that level is read without a pause (see readAhead). In a level whose reading pauses, the message could wait behind
// messages that are due later. A message that is nearly due, or for which neither level is suitable, is held. If the
// held messages fill the memory, the lane is not read until memory is free.
//
// A lane with a delay never spills: its messages leave in about the order in which they are stored, so its reading may
// pause.
func holdOrSpill(p plan, m moment, f *flight, at leader.Time) step {
	remaining := at.Sub(m.now)
	if p.delay > 0 || !m.crowded || remaining < minSpill {
		return step{kind: hold, at: at}
	}
	level, _ := p.Ladder.LongestFit(remaining)
	if level.Delay > max(remaining, readAhead) {
		return step{kind: hold, at: at}
	}
	return step{kind: hop, level: p.shorterLevel(level, f.refusedBy)}
}

// shorterLevel returns the level for the next hop. RefusedBy is the name of the level that refused the latest hop; it
// is empty if no level refused. If the refusing level is the given level or a shorter level, shorterLevel returns the
// level below the refusing level. In all other cases, and after a refusal by the smallest level, it returns the given
// level.
func (p plan) shorterLevel(level levels.Level, refusedBy string) levels.Level {
	if refusing, ok := p.Ladder.Lookup(refusedBy); ok && refusing.Delay <= level.Delay {
		if shorter, ok := p.Ladder.ShorterLevel(refusing); ok {
			return shorter
		}
	}
	return level
}

// overdueSince returns the time since which a message with the next step s is overdue. Ok is false if the message is
// not overdue. Usually, that is the end of its wait in the lane (laneKind.deadline). The special cases:
//
//	a message in a retry lane                          overdue from its due time on
//	a message that waited for its rate, in any lane    overdue from its reserved send time on
//	a message that waited for the end of a pause       overdue from the resumption on
//	a message that only a newer broker can read        overdue from the end of the lane's delay on
func overdueSince(p plan, f *flight, s step) (since leader.Time, ok bool) {
	if f.hasNewerFormat() { // the due time cannot be read
		return f.storedAt().Add(p.delay), true
	}
	since, retry := p.kind.deadline(p, f)
	switch {
	case s.kind == hold && (!retry || f.request.Reservation != ""):
		return leader.Time{}, false
	case f.request.Due.IsZero(): // the message could not be parsed
		return f.storedAt(), true
	}
	if retry && f.request.Reservation != "" {
		since = f.nextAttempt()
	}
	if p.resumed.After(since) {
		since = p.resumed
	}
	return since, true
}
