package engine

import (
	"log/slog"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/levels"
)

// This file decides the next step of each message. Its functions are pure: their arguments are the lane's plan, the
// situation of the worker, the message, and an answer. They return the next step, and change nothing. The steps are
// carried out in settle.go.
//
//	read, or its time has come    next; if it is due, laneKind.due
//	a stream of ours answered     afterStore
//	a stream's copy was read      afterCheck
//	a delivery ended              afterDelivery

const (
	// lookahead is the time before its level's end at which a message may leave it, so that it is on the wheel in time. It
	// is far below the shortest level, or messages would circle.
	lookahead = 50 * time.Millisecond
	// hopSlack is the part of the lookahead that a hop may take: a level "fits" if the message, stored this much later,
	// still leaves it in time. Without it a message with 2h less a millisecond to go would take six hops.
	hopSlack = lookahead / 2
	// newerWait is the interval at which a message of a newer format is checked again.
	newerWait = time.Minute
	// near is the time to the due time within which a message is held in memory even when memory is short.
	near = 250 * time.Millisecond
)

// next decides about a message that was just read, or whose time on the wheel has come. The due time travels with the
// message, so any ladder may continue a chain of hops that another ladder began.
//
//	     stored                              leaves            due
//	───────┼─────────────────────────────────┼─┼────────────────┼─────▶
//	       │◀──────── the lane's delay ────────▶│
//	                                lookahead ▶│◀  rest: hop, or below the horizon hold
func next(p plan, m moment, f *flight) step {
	if f.sent != nil {
		if f.sent.found > 0 {
			return step{kind: check}
		}
		return step{kind: repeat}
	}
	if f.timer != nil {
		if s := nextOfTimer(p, m, f); s.Kind != role.AsAny {
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

// leaves returns the latest time at which a message leaves a lane, if it does not stay there until it is due.
func leaves(p plan, f *flight) leader.Time { return f.storedAt().Add(p.delay - lookahead) }

// staysUntilDue reports whether a message is within the horizon now, or will be when it would leave the lane.
func staysUntilDue(p plan, m moment, f *flight) bool {
	when, horizon := f.when(), p.ladder.Horizon()+lookahead
	return when.Sub(m.now) <= horizon || when.Sub(leaves(p, f)) <= horizon
}

// nextOfTimer decides about a named timer until its firing is decided, and again when it is settled.
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
			"refused %d times, and still here when Delay-Expires %s had passed; last error: %s",
			f.request.Attempts, expires, f.request.LastError)
	}
	return message.Problemf(message.Expired, "it was still here when Delay-Expires %s had passed", expires)
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

// holdOrSpill holds a message in memory, or stores it in a level when many messages are in memory already. The intake,
// which has no delay, must not stop reading because of messages that are far from due, or nearly due messages behind
// them would be late. So while memory is short, a message that is not nearly due goes into the longest level that fits,
// and waits there among messages with similar due times. If no level fits, the shortest level is used, provided that it
// is read at once; otherwise the message would wait there behind messages that are due later. Then it stays in memory,
// and the intake may read no further until a message is due. In a level all messages are about equally far from due, so
// a level simply reads on later.
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

// smaller returns the level to try: the given level or, if that level or a smaller one has just refused the message,
// the level below the one that refused. After the smallest level has refused, smaller begins again with the given
// level.
func (p plan) smaller(level levels.Level, refused string) levels.Level {
	if no, ok := p.ladder.Lookup(refused); ok && no.Delay <= level.Delay {
		if below, ok := p.ladder.Below(no); ok {
			return below
		}
	}
	return level
}
