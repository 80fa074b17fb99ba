package role

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
)

// Fail records that a message has become a dead letter. If its series has Delay-Pause-After, Fail returns the alarm
// that counts the letter in the pending round: a or, for a message without an alarm, a new one. Otherwise it returns a.
// The fired round is settled only afterwards. So after a crash, another instance stores the letter again under the same
// id, and counts it, unless the pending round already names its round.
func (l *Lane) Fail(a *Alarm, r message.Request, reason string) *Alarm {
	origin := r.Origin()
	if origin.PauseAfter == 0 || a != nil && a.state < fired { // the latter: the letter ends the series
		return a
	}
	subject := message.UnescapeSubject(r.Subject)
	if a == nil {
		a = &Alarm{Subject: subject, lane: l, state: fired, removal: removal{reach: onlyThis}}
	}
	a.removal.failure = new(change.Failure(l.Policy.Names, subject, origin, reason))
	return a
}

// countFailure reports whether the change has paused the series. It changes nothing if the series has ended, or has
// counted the failure before.
func (s *Stream) countFailure(ctx context.Context, c change.Change) (paused bool, err error) {
	answer, err := s.changes.Do(ctx, c)
	if refused, ok := errors.AsType[*change.Error](err); ok && refused.Code < change.CodeBusy {
		return false, nil // there is no such series, or its entry is invalid
	}
	if err == nil && answer.InDoubt && answer.Outcome == timer.Unknown {
		err = errors.New(cmp.Or(answer.Why, "no answer"))
	}
	if err != nil {
		return false, fmt.Errorf("count a dead letter of %s %s: %w", c.Key, c.Target, err)
	}
	return answer.Changed && answer.Outcome == timer.Paused, nil
}
