package engine

import (
	"log/slog"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/levels"
)

// This file decides the next step of a message that was just read, or whose time on the wheel has come. decide_store.go
// and decide_delivery.go decide after answers. Their functions are pure: from the lane's plan, the situation of the
// worker, the message and the answer they compute the next step, and they change nothing. apply.go carries out the
// steps.
//
//	read, or taken off the wheel    next; for a due message, laneKind.due
//	one of our streams answered     afterStore
//	a stream's copy was read        afterCheck
//	a delivery ended                afterDelivery

const (
	// A message may leave a level when the rest of the level's delay is at most lookahead, so that the message is on
	// the wheel in time. The lookahead must be far below the shortest level, so that messages do not circle.
	lookahead = 50 * time.Millisecond
	// hopSlack is the part of the lookahead that a hop may take. A level fits a message if the message, stored hopSlack
	// from now, still leaves the level in time. Without hopSlack, a message with a remaining time of 2h less a millisecond
	// would take six hops.
	hopSlack = lookahead / 2
	// newerWait is the interval at which a message of a newer format is checked again.
	newerWait = time.Minute
	// near is the remaining time below which a message is held in memory even when memory is short.
	near = 250 * time.Millisecond
)

// next decides about a message that was just read, or whose time on the wheel has come.
//
//	     stored                              leaves            due
//	───────┼─────────────────────────────────┼─┼────────────────┼─────▶
//	       │◀──────── the lane's delay ────────▶│
//	                                lookahead ▶│◀  remaining time: hop, or hold if it is below the horizon
func next(p plan, m moment, f *flight) step {
	if f.sent != nil {
		if f.sent.found > 0 {
			return step{kind: check}
		}
		return step{kind: repeat}
	}
	if f.timer != nil {
		if s := nextOfTimer(p, m, f); s.Kind != role.Default {
			return timerStep(m, f, s)
		}
	}
	if f.problem != nil {
		return unfit(m, f)
	}
	if expires := f.request.Expires; m.proven && !expires.IsZero() && m.now.After(leader.At(expires)) {
		return step{kind: dead, why: expired(f)}
	}
	when := f.when()
	left := when.Sub(m.now)
	if left <= 0 && m.proven {
		return p.kind.due(p, m, f)
	}
	if staysUntilDue(p, m, f) {
		return holdOrSpill(p, m, f, when)
	}
	if leaves := leaves(p, f); m.now.Before(leaves) {
		s := holdOrSpill(p, m, f, slackEnd(leaves, collect))
		s.leaves = true
		return s
	}
	level, ok := p.ladder.Next(left + hopSlack)
	if !ok {
		return holdOrSpill(p, m, f, when)
	}
	return step{kind: hop, level: p.smaller(level, f.refused)}
}

// leaves returns the time from which a message may leave a lane by a hop.
func leaves(p plan, f *flight) leader.Time { return f.storedAt().Add(p.delay - lookahead) }

// staysUntilDue reports whether the remaining time of a message is below the horizon now, or will be when a hop could
// take the message from the lane.
func staysUntilDue(p plan, m moment, f *flight) bool {
	when, horizon := f.when(), p.ladder.Horizon()+lookahead
	return when.Sub(m.now) <= horizon || when.Sub(leaves(p, f)) <= horizon
}

// nextOfTimer decides about a named timer until its firing is stored, and again after its delivery.
func nextOfTimer(p plan, m moment, f *flight) role.Step {
	return f.timer.Next(
		role.Moment{
			Now: m.now, Proven: m.proven, Crowded: m.crowded, Own: p.kind.holdsTimers(), Last: staysUntilDue(p, m, f),
		},
		role.Message{Stored: f.storedAt(), When: f.when(), Bad: f.problem != nil})
}

// expired returns the problem of a message that expired before it was delivered.
func expired(f *flight) *message.Problem {
	expires := f.request.Expires.UTC().Format(time.RFC3339Nano)
	if f.request.Attempts > 0 {
		return message.Problemf(message.Expired,
			"refused %d times, and not delivered before Delay-Expires %s; last error: %s",
			f.request.Attempts, expires, f.request.LastError)
	}
	return message.Problemf(message.Expired, "it was not delivered before Delay-Expires %s", expires)
}

// unfit decides about a message that cannot be delivered as it is.
func unfit(m moment, f *flight) step {
	switch f.problem.Code {
	case message.UnknownKey:
		return step{kind: awaitKey}
	case message.NewerFormat:
		return step{kind: hold, at: m.now.Add(newerWait), note: &note{slog.LevelWarn,
			"a message waits for a newer broker, which wrote it: run one, or wait until the upgrade is done",
			[]any{"sequence", f.Sequence, "reason", f.problem.Sentence}}}
	}
	return step{kind: dead, why: f.problem}
}

// holdOrSpill holds a message in memory until a given time. If memory is short in a lane without a delay, such as the
// intake, it stores a message that is not nearly due in a level instead. Messages that are far from due must not stop
// the intake from reading: nearly due messages may come behind them. The message goes into the longest level that fits,
// among messages with similar due times. If no level fits, it goes into the shortest level, if that level is read
// without a pause (see readAhead). Otherwise it is held: in the level, it would wait behind messages that are due
// later. If the held messages fill the memory, the intake stops reading until a message is due. A lane with a delay
// never spills. Its messages have similar due times, so when memory is short, the lane only pauses its reading.
func holdOrSpill(p plan, m moment, f *flight, at leader.Time) step {
	left := at.Sub(m.now)
	if p.delay > 0 || !m.crowded || left < near {
		return step{kind: hold, at: at}
	}
	fits, _ := p.ladder.Longest(left)
	if fits.Delay > max(left, readAhead) {
		return step{kind: hold, at: at}
	}
	return step{kind: hop, level: p.smaller(fits, f.refused)}
}

// smaller returns the level for the next hop. Refused is the name of the level that refused the last hop; it is empty
// if no level refused. If the refusing level is the given level or a smaller one, smaller returns the level below the
// refusing level. In all other cases, and after a refusal by the smallest level, smaller returns the given level.
func (p plan) smaller(level levels.Level, refused string) levels.Level {
	if no, ok := p.ladder.Lookup(refused); ok && no.Delay <= level.Delay {
		if below, ok := p.ladder.Below(no); ok {
			return below
		}
	}
	return level
}
