package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
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
	// silentTries is the number of unanswered deliveries in a row to a target that should acknowledge: the last of them
	// counts as a refusal.
	silentTries = 3
	// maxDeferral is longer than any retry lane.
	maxDeferral = forever
	// stalled is the reason for the wait of a message that its target did not refuse.
	stalled = "its target takes no more at the moment: it is slow or silent, or much waits for it"
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

// storeAnswer is the answer to a publish into one of our streams.
type storeAnswer struct {
	ack   jsapi.Ack
	err   error // there was no answer
	local bool  // refused by our own client, and never sent
}

// refusal reports whether the stream has certainly not stored the message.
func (a storeAnswer) refusal() bool {
	return a.err == nil && a.ack.Outcome().Final()
}

// afterStore decides after the answer of one of our streams to a publish, or its timeout. Without an answer the same
// message is published again, under the same id, and that counts as no attempt. Sent is the publish: after a refusal,
// the flight no longer has it.
func afterStore(p plan, m moment, f *flight, sent *publish, a storeAnswer) step {
	switch {
	case a.refusal():
		return afterRefusal(p, m, f, sent, a.ack)
	case a.err != nil || a.ack.Refused():
		s := repeatLater(m, f, a.err)
		if errors.Is(a.err, acks.ErrTimeout) {
			s.note = &note{slog.LevelWarn,
				"a lane does not acknowledge; trying again: " +
					"look at the stream's leader, the servers' disks, and the right to publish there",
				[]any{"subject", sent.subject}}
		}
		return s
	case a.ack.Duplicate:
		return step{kind: check}
	}
	s := step{kind: arrive}
	if sent.kind == dead {
		s.note = &note{slog.LevelInfo, "dead letter",
			[]any{"code", sent.why.Code, "target", f.request.Target, "id", f.request.ID, "reason", sent.why.Sentence}}
	}
	return s
}

// afterRefusal decides after the refusal of one of our streams. An attempt counts when it has been stored: a message
// that no retry lane takes stays as it was and is delivered from here, however long it takes. The same holds for the
// dead letter of a last attempt: the target may take the message before there is room for the letter.
func afterRefusal(p plan, m moment, f *flight, sent *publish, no jsapi.Ack) step {
	tooLarge := no.Code == jsapi.CodeTooLarge
	s := wait(m, f)
	switch sent.kind {
	case hop:
		_, hasSmaller := p.ladder.Below(sent.level)
		switch {
		case !f.when().After(m.now): // it may still be delivered from here
			return next(p, m, f)
		case tooLarge && f.request.Paced != "": // it is in the home of its rate, its last lane
			return step{kind: hold, at: f.when()}
		case tooLarge:
			return step{kind: dead, why: tooLargeForLevels(f)}
		case hasSmaller:
			return next(p, m, f) // at the next smaller level
		}
		s.note = &note{slog.LevelWarn, "no level takes messages; trying again",
			[]any{"level", sent.level.Name, "reason", no.Description}}
	case retry:
		if tooLarge && sent.as.Attempts > f.request.Attempts { // otherwise it would be refused for ever
			return step{kind: dead, why: tooLargeForLevels(f), as: sent.as}
		}
		s.note = &note{slog.LevelWarn, "a retry lane takes nothing; trying again from here",
			[]any{"lane", sent.level.Name, "reason", no.Description}}
	case park:
		s = deferred(p, m, f, maxDeferral, pausedOut)
		s.note = &note{slog.LevelWarn, "the stream of paused messages refuses a message; it waits in a retry lane",
			[]any{"stream", sent.stream, "reason", no.Description}}
	case dead:
		s.note = &note{slog.LevelError, "dead letters are not stored; trying again",
			[]any{"code", sent.why.Code, "reason", no.Description}}
	default:
		panic("bug: nothing else is stored")
	}
	return s
}

func tooLargeForLevels(f *flight) *message.Problem {
	return message.Problemf(message.TooLarge,
		"%d bytes and headers are more than the levels accept: publish less, or raise max_payload", len(f.Data))
}

// afterCheck decides after a stream reported a duplicate, and its copy was read. Ours means that we wrote the copy.
// Otherwise another client used the id before us, and the message is published under another id, at worst as a
// duplicate.
func afterCheck(m moment, f *flight, ours bool, err error) step {
	switch {
	case err != nil:
		return wait(m, f)
	case ours:
		return step{kind: arrive}
	}
	return step{kind: renew}
}

// judgeSilence turns the third silence in a row of a target that should acknowledge into a refusal. Package deliver
// defines the meaning of a silence.
func judgeSilence(f *flight, r deliver.Result) deliver.Result {
	if silence(r) && f.silent >= silentTries {
		return deliver.Result{Outcome: deliver.Refused,
			Reason: fmt.Sprintf("%s (%d times in a row)", r.Reason, silentTries)}
	}
	return r
}

func silence(r deliver.Result) bool {
	return r.Outcome == deliver.Unknown && errors.Is(r.Err, acks.ErrTimeout)
}

// afterDelivery decides after a delivery has ended. Turn is the time until the result's Turn.
func afterDelivery(p plan, m moment, f *flight, r deliver.Result, turn time.Duration) step {
	switch r.Outcome {
	case deliver.Delivered:
		return step{kind: arrive}
	case deliver.Unknown: // the target did not refuse it: repeat under the same id
		if errors.Is(r.Err, deliver.ErrHalted) {
			return step{kind: hold, at: f.when()} // its target was just paused or resumed: decide again, in order
		}
		return repeatLater(m, f, r.Err)
	case deliver.Paced:
		as := f.request
		as.RetryAt, as.Paced, as.Deferred = m.now.Add(turn).Stamp(), r.Paced, ""
		return step{kind: pace, as: &as}
	case deliver.Expired:
		return step{kind: dead, why: message.Problemf(message.Expired,
			"there was no turn for it at its target before Delay-Expires %s", f.request.Expires.UTC().Format(time.RFC3339Nano))}
	case deliver.NoRoom:
		s := deferred(p, m, f, maxDeferral, "JetStream has no room: "+r.Reason)
		s.note = &note{slog.LevelError,
			"JetStream has no room to deliver; trying again until it has: " +
				"raise the limits of the account or server, or free some",
			[]any{"target", f.request.Target, "reason", r.Reason}}
		return s
	case deliver.Stalled:
		return deferred(p, m, f, turn, stalled)
	case deliver.Refused:
		if r.Code == jsapi.CodeTooLarge {
			return step{kind: dead, why: message.Problemf(message.TooLarge,
				"%d bytes and headers are more than the target takes: %s", len(f.Data), r.Reason)}
		}
		return refusedByTarget(p, m, f, r.Reason)
	}
	panic("bug: unknown outcome of a delivery")
}

// refusedByTarget sends a message to its next attempt, or to the dead letters after the last.
func refusedByTarget(p plan, m moment, f *flight, reason string) step {
	failed := f.request.Attempts + 1
	allowed, waits := p.allowed(f.request), p.waits(f.request.Target)
	wait := waits[min(failed, len(waits))-1]
	again, expires := m.now.Add(wait.Delay+p.jitter(f.request, failed, wait.Delay)), f.request.Expires
	if !expires.IsZero() && again.After(leader.At(expires)) {
		again = m.now.Add(wait.Delay) // a jitter must not let the message expire
	}
	as := f.request.Refused(m.now.Stamp(), again.Stamp(), reason)
	as.Allowed = allowed
	s := step{kind: retry, level: wait, as: &as, about: as.Target, note: &note{slog.LevelWarn, "target refuses",
		[]any{"target", as.Target, "reason", as.LastError, "attempt", failed, "of", allowed}}}
	switch {
	case failed >= allowed:
		s.kind, s.why = dead, message.Problemf(message.Undelivered,
			"the target refused all of %d attempts; last error: %s", failed, reason)
	case !expires.IsZero() && again.After(leader.At(expires)):
		s.kind, s.why = dead, message.Problemf(message.Expired,
			"refused %d times, and the next attempt would come after Delay-Expires %s; last error: %s",
			failed, expires.UTC().Format(time.RFC3339Nano), reason)
	}
	if s.kind == dead {
		as.RetryAt = time.Time{}
	}
	return s
}

// deferred moves a message into a retry lane. That counts as no attempt: the target has not refused the message. The
// message comes again after the wait, or after the wait of the last retry lane if that is shorter.
func deferred(p plan, m moment, f *flight, wait time.Duration, why string) step {
	last, _ := p.retries.Longest(forever)
	wait = min(wait, last.Delay)
	to, _ := p.retries.Longest(wait)
	as := f.request.Defer(m.now.Add(wait).Stamp(), why) // a turn is over by then
	as.Allowed = p.allowed(f.request)
	return step{kind: retry, level: to, as: &as}
}

// repeatLater repeats a publish that was not answered. If the connection was lost, the publish is repeated as soon as
// the connection is back.
func repeatLater(m moment, f *flight, err error) step {
	if acks.Offline(err) {
		return step{kind: hold, at: m.now}
	}
	return wait(m, f)
}

// wait backs off. The wait grows from 50 ms to 3.2 s. In a lane with thousands of such messages it grows further, until
// one of them is repeated every millisecond: a full server should not get more load than one with room. The wait ends
// when the message is due: the target may take a message that no level takes.
func wait(m moment, f *flight) step {
	at := m.now.Add(backOffTime(f.tries, m.inFlight))
	if due := f.when(); due.After(m.now) && due.Before(at) {
		at = due
	}
	return step{kind: backOff, at: at}
}

// backOffTime returns the wait after so many tries, in a lane with so many messages.
func backOffTime(tries, inFlight int) time.Duration {
	wait := 50 * time.Millisecond << min(tries, 6)
	if tries > 6 {
		wait = max(wait, time.Duration(inFlight)*time.Millisecond)
	}
	return wait
}
