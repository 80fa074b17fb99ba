package clienttest

import (
	"context"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
)

// retryWaits are the waits after a refusal, as in a broker with the default DELAY_RETRY. The last one is repeated.
var retryWaits = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// A refusal lets a target refuse deliveries.
type refusal struct {
	pattern string
	count   int // of the deliveries that are still refused
	reason  string
}

// Refuse makes the targets that match the pattern refuse their next n deliveries together, with the given reason. No
// handler is called for these, and Advance does not return them. As a broker does by default, the fake delivers a
// refused message again after 1 s, 5 s, and then always 30 s. After Config.Attempts refusals, or MaxAttempts, the
// message becomes one of Letters. The next delivery has the number of refusals in Arrival.Attempts.
func (f *Fake) Refuse(pattern string, n int, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals = append(f.refusals, refusal{pattern, n, reason})
}

// attempt reports whether the target accepts a message, and returns the outcome for a timer.
func (f *Fake) attempt(r Publication) (outcome entry.Outcome, delivered bool) {
	for i := range f.refusals {
		if refused := &f.refusals[i]; refused.count > 0 && message.Match(refused.pattern, r.Target) {
			refused.count--
			return f.retry(r, refused.reason), false
		}
	}
	return entry.Delivered, true
}

// retry makes a refused message pending again, or a dead letter, as a broker does. It returns the outcome for a timer.
func (f *Fake) retry(r Publication, reason string) entry.Outcome {
	attempts, limit := r.parsed.Attempts+1, r.parsed.RefusalLimit(f.policy.Attempts(r.Target))
	next := f.now.Add(retryWaits[min(attempts, len(retryWaits))-1])
	if problem := r.parsed.AfterRefusal(attempts, limit, next, reason); problem != nil {
		f.letters = append(f.letters, Letter{Subject: r.Subject, Code: problem.Code, Reason: problem.Sentence})
		f.countFailure(r, problem.Sentence)
		return entry.Dead
	}
	r.parsed.Request = r.parsed.WithRefusal(f.now, next, reason)
	r.Due = next
	f.insert(r)
	return entry.Retrying
}

// countFailure pauses the series of a dead letter after client.PauseAfter letters in a row. It releases the lock
// meanwhile.
func (f *Fake) countFailure(r Publication, reason string) {
	origin := r.parsed.Origin()
	if origin.PauseAfter == 0 {
		return
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	failure := change.Failure(f.policy.Names, r.Subject, origin, reason)
	_, _ = store{f}.changes().Do(context.Background(), failure) // the series may have ended
}
