package store

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

// This file makes the entries of a change of a series. An entry of the broker replaces the pending round, and fires
// nothing. An additional delivery is a separate timer, which is due immediately.

// firesExtra reports whether the change is one delivery in addition to a series.
func (a *attempt) firesExtra() bool {
	return a.Verb == timer.Fire && a.State.Entry.Recurs != nil
}

// seriesEntry returns the entry that the change writes in place of a pending round, or of a pause.
func (a *attempt) seriesEntry(generation uint64, r entry.Pending, now time.Time) (*nats.Msg, error) {
	if a.Verb == timer.Fire {
		return a.extra(r, now)
	}
	if err := a.canSeal(); err != nil {
		return nil, err
	}
	next, err := a.next(r, now)
	if err != nil {
		return nil, err
	}
	header := r.RoundHeader(generation, next)
	a.Policy.Keys.SealMessage(a.Subject, header, a.State.In.Data, now)
	e := entry.Parse(a.Policy, message.Incoming{
		Stream: a.State.In.Stream, Sequence: generation + 1, At: now, Subject: a.Subject, Header: header,
		Data: a.State.In.Data,
	})
	if e.Problem != nil {
		return nil, Refusef(CodeBad, "%s", e.Problem.Sentence)
	}
	return &nats.Msg{Subject: a.Subject, Header: nats.Header(header), Data: a.State.In.Data}, nil
}

// canSeal returns an error if our seal cannot be made: an unsealed entry would replace another, and be invalid.
func (a *attempt) canSeal() error {
	if !a.Policy.Keys.Empty() {
		return nil
	}
	refused := Refusef(CodeTrouble, "%v: ask on %s", ErrSecret, a.Policy.Names.TimerCall(string(a.Verb)))
	refused.is = ErrSecret
	return refused
}

// next returns the round that replaces another. Now is the leader's time.
func (a *attempt) next(r entry.Pending, now time.Time) (entry.Next, error) {
	series, round := r.Round()
	n := entry.Next{Round: round, Table: r.Recurs.Table, First: series.First, Word: a.ID}
	asked, err := a.asked(now)
	if err != nil {
		return n, err
	}
	paused := round.Due.IsZero()
	switch a.Verb {
	case timer.Pause:
		n.Round.Due = time.Time{}
	case timer.Resume:
		n.Round.Due = n.Table.Round(series, round.Number, round.Planned).Due
	case timer.Retime:
		n.Table = *a.Table
		if !asked.IsZero() {
			n.First = asked
		}
		if problem := entry.CheckRecurring(a.Policy, n.Table, len(a.State.In.Data)); problem != nil {
			return n, Refusef(codeOf(problem), "%s", problem.Sentence)
		}
		planned, ok := n.Table.Start(now, n.First)
		if !ok || n.Table.Rounds > 0 && round.Number > n.Table.Rounds {
			return n, Refusef(CodeBad, "no round would be left of %s", n.Table)
		}
		n.Round = n.Table.Round(timetable.Series{ID: series.ID, First: n.First}, round.Number, planned)
		if paused {
			n.Round.Due = time.Time{}
		}
	default:
		if paused {
			return n, Refusef(CodeBad, "it is paused, and no round is due: resume it first, and move the round then")
		}
		if n.Round.Due = asked; asked.IsZero() {
			n.Round.Due = r.Due.Add(a.By)
			if a.By > 0 { // the planned round may be later than the limit for a client
				return n, a.bounded(now, n.Round.Due)
			}
		}
	}
	return n, nil
}

func codeOf(problem *message.Problem) int {
	if problem.Code == message.TooLarge {
		return CodeLarge
	}
	return CodeBad
}

// asked returns the time in the change; zero for none.
func (a *attempt) asked(now time.Time) (time.Time, error) {
	at := a.Until
	if a.For != "" {
		d, err := levels.ParseDuration(a.For)
		if err != nil {
			return at, Refusef(CodeBad, "%v", err)
		}
		at = now.Add(d)
	}
	return at, a.bounded(now, at)
}

// bounded refuses a time in a change that is too far ahead.
func (a *attempt) bounded(now, due time.Time) error {
	if problem := a.Policy.CheckDelay(now, due); problem != nil {
		return Refusef(CodeBad, "%s", problem.Sentence)
	}
	return nil
}

// extra returns a timer to the target of a series, due at once. Its key is derived from the request's ID, and the
// publish expects no entry. So it fires once, however often it is published, as long as its last entry is kept
// (entry.RepeatTime). It needs only the right to set timers to the target. For a schedule it has our seal, since it
// contains headers that only the broker may write.
func (a *attempt) extra(r entry.Pending, now time.Time) (*nats.Msg, error) {
	h := make(message.Header, len(r.User)+7)
	maps.Copy(h, r.User)
	maps.Copy(h, r.Options())
	h[message.HeaderFor], h[message.HeaderExpected] = []string{"0s"}, []string{"0"}
	sum := sha256.Sum256([]byte(a.Key + " " + a.ID))
	subject := a.Policy.Names.Timer(entry.RepeatKey+hex.EncodeToString(sum[:16]), r.Target)
	if a.schedule() {
		if err := a.canSeal(); err != nil {
			return nil, err
		}
		entry.PutDelivery(h, r.Origin(), r.Due)
		a.Policy.Keys.SealMessage(subject, h, a.State.In.Data, now)
	}
	in := message.Incoming{At: now, Subject: subject, Header: h, Data: a.State.In.Data}
	if _, problem := entry.ParseSet(a.Policy, in); problem != nil {
		return nil, Refusef(CodeBad, "%s", problem.Sentence)
	}
	return &nats.Msg{Subject: subject, Header: nats.Header(h), Data: a.State.In.Data}, nil
}
