package operation

import (
	"cmp"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
)

// exits has the exit codes of the outcomes that are no success.
var exits = map[string]int{
	inspect.LetterLeft: 1, "refused": 1, string(timer.TooLate): 3, string(timer.NotFound): 4,
	string(timer.Conflict): 5, string(timer.Unknown): 6,
}

// sentenceOf returns the outcome of a change of one timer for people, and whether it is a success.
func sentenceOf(a change.Answer) (sentence string, good bool) {
	sentence = map[timer.Outcome]string{
		timer.Paused:    "paused: the timer does not fire until it is resumed",
		timer.Pending:   "resumed: due " + text.Moment(a.Due),
		timer.Cancelled: "cancelled: the timer will not be delivered",
		timer.Moved:     "moved: due " + text.Moment(a.Due),
		timer.Fired:     "fired: the timer is delivered now",
	}[a.Outcome]
	if sentence != "" {
		return sentence, true
	}
	return cmp.Or(map[timer.Outcome]string{
		timer.TooLate:  "too late: the timer has fired",
		timer.NotFound: "not changed: the timer has ended",
		timer.Conflict: "not changed: the timer has changed since the plan: plan the action again",
		timer.Unknown:  "no answer: the timer may have been changed: plan the action again",
	}[a.Outcome], string(a.Outcome)), false
}
