package store

import (
	"time"

	"delaybroker/broker/message"
)

// isSchedule reports whether the change is about a schedule.
func (a *attempt) isSchedule() bool {
	_, ok := message.ScheduleOf(a.Key)
	return ok
}

// scheduleTarget returns the target of the schedule that was found; empty if it is unknown.
func (a *attempt) scheduleTarget() string {
	if !a.isSchedule() || a.State.NoEntry {
		return ""
	}
	return a.State.Entry.Request.Target
}

// sealSchedule seals an entry if the change is about a schedule.
func (a *attempt) sealSchedule(subject string, header message.Header, body []byte, now time.Time) error {
	if !a.isSchedule() {
		return nil
	}
	err := a.canSeal()
	if err == nil {
		a.Policy.Keys.SealMessage(subject, header, body, now)
	}
	return err
}

// canSeal returns an error if this process has no key for a seal. An unsealed entry would be invalid, and would replace
// a valid one.
func (a *attempt) canSeal() error {
	if !a.Policy.Keys.Empty() {
		return nil
	}
	refused := Refusef(CodeUnavailable, "%v: send the request to a broker, on %s", ErrSecret,
		a.Policy.Names.TimerCall(string(a.Verb)))
	refused.cause = ErrSecret
	return refused
}
