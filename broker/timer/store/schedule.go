package store

import (
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// This file handles the differences of schedules, which clients request in the dialect of nats-server. The subject of a
// schedule is its identity, and a header of its entries contains its target. So they count only with our seal, and a
// client that changes one must know the secrets.

// schedule reports whether the change is about a schedule.
func (a *attempt) schedule() bool {
	_, ok := message.ScheduleOf(a.Key)
	return ok
}

// scheduleTarget returns the target of the schedule that was found; empty if it is unknown.
func (a *attempt) scheduleTarget() string {
	if !a.schedule() || a.State.None {
		return ""
	}
	return a.State.Entry.Request.Target
}

// checkTarget returns the next step. A schedule with another target than the change names has replaced the schedule
// that the client means.
func (a *attempt) checkTarget(next timer.Next, known timer.Answer) (timer.Next, timer.Answer) {
	if is := a.scheduleTarget(); is != "" && a.Target != "" && a.Target != is {
		return timer.Say, timer.Answer{
			Outcome: timer.Conflict, Generation: a.State.Sequence, Due: a.State.Entry.Request.Due, Why: "its target is " + is,
		}
	}
	return next, known
}

// scheduleCancel returns the entry that cancels a generation of a schedule.
func (a *attempt) scheduleCancel(generation uint64) (*nats.Msg, error) {
	if err := a.canSeal(); err != nil {
		return nil, err
	}
	header := entry.CancelHeader(generation, a.ID)
	a.Policy.Keys.SealMessage(a.Subject, header, nil, time.Now())
	return &nats.Msg{Subject: a.Subject, Header: nats.Header(header)}, nil
}

// scheduleMove returns the entry that gives a schedule another time, with the header of a set. Now is the leader's
// time.
func (a *attempt) scheduleMove(generation uint64, name, value string, now time.Time) (*nats.Msg, error) {
	if err := a.canSeal(); err != nil {
		return nil, err
	}
	header, problem := entry.ScheduleMove(a.Policy, a.State.In, name, value, generation, a.ID, now)
	if problem != nil {
		return nil, Refusef(CodeBad, "%s", problem.Sentence)
	}
	return &nats.Msg{Subject: a.Subject, Header: nats.Header(header), Data: a.State.In.Data}, nil
}
