package engine

import (
	"errors"
	"log/slog"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

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
