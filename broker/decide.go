package broker

import (
	"time"

	"delaybroker/broker/layout"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

const (
	// lookahead is how long before its level's end a message may leave it, so that it is on the wheel in time. It is
	// far below the shortest level, or messages would circle.
	lookahead = 50 * time.Millisecond
	// hopSlack is how much of the lookahead a hop may use up on its way: a level "fits" when the message, stored this
	// much later, still leaves it in time. Without it a message with 2h less a millisecond to go would take six hops.
	hopSlack = lookahead / 2
	// newerWait is how often a message of a newer format is looked at again.
	newerWait = time.Minute
)

// Step is what to do with a message next.
type Step struct {
	Kind    StepKind
	At      time.Time        // Hold: when to decide again
	Level   levels.Level     // Hop: where to
	Problem *message.Problem // Dead: why
}

// StepKind is one of a closed set: a new feature is a new decision, not a new loop.
type StepKind int

// The steps.
const (
	Hold  StepKind = iota // on the wheel until At
	Hop                   // into a level
	Fire                  // to the target
	Retry                 // into a retry lane, after a refusal
	Dead                  // to the dead letters
)

// decide says what to do with a message of a lane, stored at the given time and asking for r, when it is now. It is a
// pure function of its arguments: due travels with the message, so any ladder may continue what another began.
//
//	     stored                              leaves            due
//	───────┼─────────────────────────────────┼─┼────────────────┼─────▶
//	       │◀──────── the lane's delay ────────▶│
//	                                lookahead ▶│◀  rest: hop, or below the horizon hold
func decide(l layout.Spec, ladder levels.Ladder, stored time.Time, r message.Request, problem *message.Problem, now time.Time) Step {
	if problem != nil {
		if problem.Code == message.NewerFormat || problem.Code == message.UnknownKey {
			return Step{Kind: Hold, At: now.Add(newerWait)}
		}
		return Step{Kind: Dead, Problem: problem}
	}
	if !r.Expires.IsZero() && now.After(r.Expires) {
		return Step{Kind: Dead, Problem: message.Problemf(message.Expired,
			"it was still here when Delay-Expires %s had passed", r.Expires.UTC().Format(time.RFC3339Nano))}
	}
	when := r.When()
	left := when.Sub(now)
	if left <= 0 {
		return Step{Kind: Fire}
	}
	horizon := ladder.Horizon() + lookahead
	leaves := stored.Add(l.Delay - lookahead)
	if left <= horizon || when.Sub(leaves) <= horizon {
		return Step{Kind: Hold, At: when}
	}
	if now.Before(leaves) {
		return Step{Kind: Hold, At: leaves}
	}
	level, ok := ladder.Next(left + hopSlack)
	if !ok {
		return Step{Kind: Hold, At: when}
	}
	return Step{Kind: Hop, Level: level}
}

// decideRefused says what to do with a message whose delivery was refused.
func decideRefused(retry levels.Ladder, attempts int, r message.Request, now time.Time, reason string) Step {
	failed := r.Attempts + 1
	if failed >= attempts {
		return Step{Kind: Dead, Problem: message.Problemf(message.Undelivered,
			"the target refused all of %d attempts, lastly: %s", failed, reason)}
	}
	waits := retry.Levels()
	wait := waits[min(failed, len(waits))-1]
	if !r.Expires.IsZero() && now.Add(wait.Delay).After(r.Expires) {
		return Step{Kind: Dead, Problem: message.Problemf(message.Expired,
			"refused %d times, and the next attempt would come after Delay-Expires %s, lastly: %s",
			failed, r.Expires.UTC().Format(time.RFC3339Nano), reason)}
	}
	return Step{Kind: Retry, Level: wait, At: now.Add(wait.Delay)}
}
