package alarm

import (
	"context"
	"time"

	"delaybroker/broker/control"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// Sight is the last entry of a timer's subject, as it was read.
type Sight struct {
	Found timer.Found
	In    message.Incoming // as it is stored
}

// LastEntry reads the last entry of a subject from the leader of the stream.
func (s *Stream) LastEntry(ctx context.Context, subject string, generation uint64) (see Sight, err error) {
	from := control.Entries{API: s.API, Policy: s.Policy, Sample: s.Sample}
	see.Found, see.In, err = control.LastEntry(ctx, from, subject, generation)
	return see, err
}

// Examined notes what was read of a timer in doubt, and decides what comes next. Local is our own clock's time.
func (s *Stream) Examined(a *Alarm, see Sight, now leader.Time, local time.Time) Step {
	found := see.Found
	if found.Entry.Kind == message.UnprovenEntry {
		s.ReadKeys(local)
	}
	firing := a.firing(s.Instance)
	switch behind := found.Behind(firing); {
	case !behind:
		a.behind = time.Time{}
	case a.behind.IsZero():
		a.behind = local
	default:
		found.Lasting = local.Sub(a.behind) >= timer.StaleFor
	}
	var patience time.Duration
	if by := found.Entry.By; by != "" {
		patience = s.Patience(by)
	}
	v, until := timer.Judge(firing, found, now.Stamp(), patience)
	switch {
	case v == timer.Drop && a.Swept() && !found.None: // what was before the last entry should have gone
		a.Stage, a.Entry, a.Keep = Settled, found.Sequence, true
		return Step{Kind: Remove}
	case v == timer.Claim:
		a.Stage = Pending
	}
	return afterExamine(v, until)
}

// afterExamine decides by what the last entry of a timer's subject means.
func afterExamine(v timer.Verdict, until time.Time) Step {
	switch v {
	case timer.Claim:
		return Step{Kind: Anew}
	case timer.Deliver:
		return Step{Kind: Deliver}
	case timer.Wait:
		return Step{Kind: Hold, At: leader.At(until)}
	case timer.Drop:
		return Step{Kind: LetGo}
	}
	return Step{Kind: BackOff}
}
