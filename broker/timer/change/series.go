package change

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// seriesEntry returns the entry that replaces a pending or paused round. For Fire, it returns the set of another timer
// (extraDelivery), and the round stays.
func (a *attempt) seriesEntry(generation uint64, r entry.Pending, now time.Time) (*nats.Msg, error) {
	if a.Verb == timer.Fire {
		m, err := a.extraDelivery(r, now)
		a.extra, a.extraGeneration = m, generation
		return m, err
	}
	if err := a.canSeal(); err != nil {
		return nil, err
	}
	next, err := a.nextRound(&r, now)
	if err != nil {
		return nil, err
	}
	a.pauses = next.Round.Due.IsZero()
	header := r.RoundHeader(generation, next)
	a.Policy.Keys.SealMessage(a.Subject, header, a.State.Message.Data)
	e := entry.Parse(a.Policy, message.Incoming{
		Stream: a.State.Message.Stream, Sequence: generation + 1, At: now, Subject: a.Subject, Header: header,
		Data: a.State.Message.Data,
	})
	if e.Problem != nil {
		return nil, Refusef(CodeBadRequest, "%s", e.Problem.Sentence)
	}
	return &nats.Msg{Subject: a.Subject, Header: nats.Header(header), Data: a.State.Message.Data}, nil
}

// Failure returns the change that counts a dead letter of a series. Subject is the subject of the failed round's entry.
func Failure(names message.Names, subject string, round message.Origin, reason string) Change {
	addr := names.Parse(subject)
	return Change{
		Call: timer.Call{Verb: timer.Fail, Series: round.Series, Round: round.Round},
		Key:  addr.Token, Target: addr.Target, Reason: reason,
	}
}

// nextRound returns the round that replaces the pending or paused one, r, and changes the failures of r. Now is the
// leader's time.
func (a *attempt) nextRound(r *entry.Pending, now time.Time) (entry.Next, error) {
	series, round := r.Round()
	n := entry.Next{Round: round, Table: r.Series.Table, First: series.First, Token: a.ID}
	requested, err := a.requestedTime(now)
	if err != nil {
		return n, err
	}
	paused := round.Due.IsZero()
	switch a.Verb {
	case timer.Pause:
		n.Round.Due = time.Time{}
	case timer.Fail:
		if n.Wait = r.RetryAt; r.AddFailure(a.Round, a.Reason) {
			n.Round.Due = time.Time{}
		}
	case timer.Resume:
		r.ClearFailures()
		n.Round.Due = n.Table.Round(series, round.Number, round.Planned).Due
	case timer.Retime:
		n.Table = *a.Table
		if !requested.IsZero() {
			n.First = requested
		}
		if problem := entry.CheckRecurring(a.Policy, n.Table, len(a.State.Message.Data)); problem != nil {
			code := CodeBadRequest
			if problem.Code == message.TooLarge {
				code = CodeTooLarge
			}
			return n, Refusef(code, "%s", problem.Sentence)
		}
		planned, ok := n.Table.Start(now, n.First)
		if !ok || n.Table.Rounds > 0 && round.Number > n.Table.Rounds {
			return n, Refusef(CodeBadRequest, "the table %s has no further round", n.Table)
		}
		n.Round = n.Table.Round(timetable.Series{ID: series.ID, First: n.First}, round.Number, planned)
		if paused {
			n.Round.Due = time.Time{}
		}
	default:
		if paused {
			return n, Refusef(CodeBadRequest,
				"the series is paused, and no round is due: resume it first, and then move the round")
		}
		if n.Round.Due = requested; requested.IsZero() {
			n.Round.Due = r.Due.Add(a.By)
			if a.By > 0 { // a planned time may already exceed the maximum delay: only a later time is checked
				return n, a.checkDelay(now, n.Round.Due)
			}
		}
	}
	return n, nil
}

// requestedTime returns the time that For or Until gives; zero without these fields.
func (a *attempt) requestedTime(now time.Time) (time.Time, error) {
	at := a.Until
	if a.For != "" {
		d, err := levels.ParseDuration(a.For)
		if err != nil {
			return at, Refusef(CodeBadRequest, "%v", err)
		}
		at = now.Add(d)
	}
	return at, a.checkDelay(now, at)
}

// checkDelay refuses a due time beyond the maximum delay.
func (a *attempt) checkDelay(now, due time.Time) error {
	if problem := a.Policy.CheckDelay(now, due); problem != nil {
		return Refusef(CodeBadRequest, "%s", problem.Sentence)
	}
	return nil
}

// extraDelivery returns the set of a timer that is due immediately, with the target of a series. Its key is a hash of
// the series' key and the request's ID, and the publish expects no entry. So while the last entry of that timer is kept
// (entry.ExtraTime), a repeated publish does not fire the timer again. The publish needs only the permission to set
// timers to the target. For a schedule, the set has our seal, since it contains headers that only the broker may write.
func (a *attempt) extraDelivery(r entry.Pending, now time.Time) (*nats.Msg, error) {
	h := make(message.Header, len(r.User)+7)
	maps.Copy(h, r.User)
	maps.Copy(h, r.OptionHeader())
	h[message.HeaderFor], h[message.HeaderExpected] = []string{"0s"}, []string{"0"}
	sum := sha256.Sum256([]byte(a.Key + " " + a.ID))
	subject := a.Policy.Names.Timer(entry.ExtraKey+hex.EncodeToString(sum[:16]), r.Target)
	if a.isSchedule() {
		entry.PutDelivery(h, r.Origin(), r.Due)
	}
	if err := a.sealSchedule(subject, h, a.State.Message.Data, now); err != nil {
		return nil, err
	}
	return a.newSet(subject, h, a.State.Message.Data, now)
}

// isSchedule reports whether the change is about a schedule.
func (a *attempt) isSchedule() bool {
	_, ok := message.ParseScheduleName(a.Key)
	return ok
}

// scheduleTarget returns the target in the last entry of a schedule; empty for other timers, and for an unknown target.
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
		a.Policy.Keys.SealMessage(subject, header, body)
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
