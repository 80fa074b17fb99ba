package engine

import (
	"errors"
	"log/slog"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// This file decides the next step after a publish into one of our streams.

// maxBackOff is the maximum backoff. A full server refuses a publish in some microseconds, so even 100,000 messages in
// memory, which repeat their publishes within maxBackOff, do not overload it.
const maxBackOff = 30 * time.Second

// storeAnswer is the answer of one of our streams to a publish, or the reason why there is no answer.
type storeAnswer struct {
	jsapi.Reply
	local bool // Ack is not from the stream: the NATS client has sent nothing, or nothing listens on the subject
}

// afterStore decides after one of our streams has answered a publish, or has not answered. If the stream may have
// stored the message, the worker publishes the same message again under the same id; this does not count as an attempt.
// Sent is the publish; f.sent is nil after a refusal.
func afterStore(p plan, m moment, f *flight, sent *publish, a storeAnswer) step {
	switch {
	case a.Outcome().NotStored():
		return afterRefusal(p, m, f, sent, a.Ack)
	case a.Err != nil || a.Ack.Refused():
		s := repeatLater(m, f, a.Err)
		if errors.Is(a.Err, acks.ErrTimeout) {
			s.line = &logLine{slog.LevelWarn,
				"a lane does not acknowledge a publish, will retry: " +
					"check the stream's leader, the servers' disks, and the permission to publish there",
				[]any{"subject", sent.subject}}
		}
		return s
	case a.Ack.Duplicate:
		return step{kind: check}
	}
	s := step{kind: arrive}
	if sent.kind == dead {
		s.line = &logLine{slog.LevelInfo, "dead letter",
			[]any{"code", sent.problem.Code, "target", f.request.Target, "id", f.request.ID, "reason", sent.problem.Sentence}}
	}
	return s
}

// afterRefusal decides after a refusal by one of our streams. An attempt counts only when it is stored. So if the retry
// lane refuses a message, the message is delivered again from its present lane, until the target or a retry lane
// accepts it. If a stream refuses the dead letter after the last allowed attempt, the message is also delivered again:
// the target may accept the message before there is room for the letter.
func afterRefusal(p plan, m moment, f *flight, sent *publish, refusal jsapi.Ack) step {
	tooLarge := refusal.Code == jsapi.CodeTooLarge
	s := backOffStep(m, f)
	switch sent.kind {
	case hop:
		_, hasSmaller := p.Ladder.ShorterLevel(sent.level)
		switch {
		case !f.nextAttempt().After(m.now): // due by now: decide again
			return nextStep(p, m, f)
		case tooLarge && f.request.Reservation != "": // the message waits here for its reserved send time
			return step{kind: hold, at: f.nextAttempt()}
		case tooLarge:
			return step{kind: dead, problem: tooLargeForLevels(f)}
		case hasSmaller:
			return nextStep(p, m, f) // at the next smaller level
		}
		s.line = &logLine{slog.LevelWarn, "no level accepts a message, will retry",
			[]any{"level", sent.level.Name, "reason", refusal.Description}}
	case retry:
		if tooLarge && sent.request.Attempts > f.request.Attempts { // a retry lane would always refuse the message
			return step{kind: dead, problem: tooLargeForLevels(f), request: sent.request}
		}
		s.line = &logLine{slog.LevelWarn,
			"a retry lane refuses a message; the message is delivered again from its present lane",
			[]any{"lane", sent.level.Name, "reason", refusal.Description}}
	case park:
		s = deferStep(p, m, f, forever, pausedReason)
		s.line = &logLine{slog.LevelWarn,
			"the stream of paused messages refuses a message; the message waits in a retry lane",
			[]any{"stream", sent.stream, "reason", refusal.Description}}
	case dead:
		s.line = &logLine{slog.LevelError, "a dead letter cannot be stored, will retry",
			[]any{"code", sent.problem.Code, "reason", refusal.Description}}
	default:
		panic("bug: refusal of an unknown kind of publish")
	}
	return s
}

func tooLargeForLevels(f *flight) *message.Problem {
	return message.Problemf(message.TooLarge,
		"a body of %d bytes with its headers is larger than the levels accept: publish less, or raise max_payload",
		len(f.Data))
}

// afterCheck decides after a stream has reported a duplicate, and the worker has read the stream's copy. Ours is true
// if a broker wrote the copy. If Ours is false, a client has used the id before, or the copy is already removed, and
// the worker publishes the message under another id. In the second case, the message may be delivered twice.
func afterCheck(m moment, f *flight, ours bool, err error) step {
	switch {
	case err != nil:
		return backOffStep(m, f)
	case ours:
		return step{kind: arrive}
	}
	return step{kind: renew}
}

// repeatLater returns the step that repeats a request without an answer. If the connection was lost, the worker repeats
// the request as soon as the connection is back. If not, it repeats the request after a backoff.
func repeatLater(m moment, f *flight, err error) step {
	if acks.Offline(err) {
		return step{kind: hold, at: m.now}
	}
	return backOffStep(m, f)
}

// backOffStep returns the step that waits for a backoff. The backoff grows from 50 ms to 3.2 s. After that, in a lane
// with thousands of messages in memory, the backoff is a millisecond for each message, up to maxBackOff. So a lane with
// up to 30,000 messages repeats about one publish each millisecond, and does not overload a full server. If the message
// is due earlier, the backoff ends when the message is due: the target may accept a message that no level accepts.
func backOffStep(m moment, f *flight) step {
	at := m.now.Add(backOffTime(f.tries, m.inMemory))
	if due := f.nextAttempt(); due.After(m.now) && due.Before(at) {
		at = due
	}
	return step{kind: backOff, at: at}
}

// backOffTime returns the backoff after a number of tries, in a lane with a number of messages in memory.
func backOffTime(tries, inMemory int) time.Duration {
	backoff := 50 * time.Millisecond << min(tries, 6)
	if tries > 6 {
		backoff = max(backoff, min(time.Duration(inMemory)*time.Millisecond, maxBackOff))
	}
	return backoff
}
