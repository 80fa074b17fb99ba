package role

import (
	"context"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
)

// Look reads the state of a generation from the leader of the stream: the last entry of its subject or, if a client has
// put something over the generation's firing, that firing. It looks for the firing only if another entry is the last.
func (s *Stream) Look(ctx context.Context, subject string, generation uint64) (see timer.State, err error) {
	see, err = store.LastEntry(ctx, s.Entries(), subject, generation)
	last := see
	if err == nil && last.Entry.Kind != entry.Fired && last.Entry.Fires(generation) {
		return s.ofRound(ctx, see, subject, generation)
	}
	if err != nil || !hides(last, generation) {
		return see, err
	}
	behind, err := s.behind(ctx, subject, generation, last)
	switch e := behind.Entry; {
	case err != nil:
		return timer.State{}, err
	case e.Kind == entry.Unproven:
		return behind, nil
	case !e.Fires(generation):
		return see, nil
	case e.Kind != entry.Fired:
		return s.ofRound(ctx, behind, subject, generation)
	}
	next, err := s.behind(ctx, subject, behind.Sequence, last)
	if e := next.Entry; err == nil && e.Kind == entry.Over && e.Generation == generation {
		return next, nil // it is settled, and a crash came before its removal
	}
	return behind, err
}

// LookAtRound is Look for a round that is due, and of which no entry was read yet. Its own entry is mostly the first of
// its subject, which proves that the rounds before are settled. That is one read instead of two: all rounds of a minute
// may be due at once. LookAtRound does not read later entries. If there is one, the stream refuses the firing, and Look
// finds it then.
func (s *Stream) LookAtRound(ctx context.Context, subject string, generation uint64) (timer.State, error) {
	m, ok, err := s.Entries().Next(ctx, subject, 1)
	if err != nil || !ok || m.Sequence != generation {
		return s.Look(ctx, subject, generation)
	}
	see := s.Entries().State(m)
	see.Alone = true
	return see, nil
}

// ofRound completes the state of a round whose firing the next round's entry records. When the round is settled, that
// entry stays, and the round's own entry is removed.
func (s *Stream) ofRound(
	ctx context.Context, next timer.State, subject string, generation uint64,
) (timer.State, error) {
	settled, err := s.roundSettled(ctx, subject, generation, next.Sequence)
	next.Settled = settled
	return next, err
}

// roundSettled reports whether the round that another one follows has been delivered, or is in a retry lane or among
// the dead letters: then, and only then, its entry is removed. A leader that knows the entry that follows has, or had,
// the one before.
func (s *Stream) roundSettled(ctx context.Context, subject string, generation, follows uint64) (bool, error) {
	m, err := s.known(ctx, subject, generation)
	return err == nil && m.Sequence >= follows, err
}

// BeforeSettled reports whether no earlier round of a series is on its way, and whether no earlier entry is left at
// all. The generation's own entry records whether the round right before it has fired. If it replaced one that was
// moved or paused, then the replaced entry records that, or an older one: so all remaining entries are read.
func (s *Stream) BeforeSettled(
	ctx context.Context, subject string, series, generation uint64,
) (settled, alone bool, err error) {
	for from, before := uint64(1), uint64(0); ; {
		m, err := s.known(ctx, subject, from)
		if err != nil {
			return false, false, err
		}
		if before == 0 && m.Sequence == generation {
			return true, true, nil
		}
		e := entry.Parse(s.Policy, m.Incoming(s.Name()))
		if before > 0 && (e.Kind == entry.Unproven || e.Fires(before) && e.Fired().Origin().Series == series) {
			return false, false, nil
		}
		if m.Sequence >= generation {
			return true, false, nil
		}
		from, before = m.Sequence+1, m.Sequence
	}
}

// hides reports whether a firing of a generation may lie before the last entry of its subject.
func hides(last timer.State, generation uint64) bool {
	if last.None || last.Sequence <= generation {
		return false
	}
	switch e := last.Entry; e.Kind {
	case entry.Fired, entry.Over:
		return e.Generation != generation
	case entry.Cancel:
		return e.Cancelled != generation // the cancel replaced the set
	case entry.Unproven:
		return false // an unproven entry proves nothing
	}
	return true
}

// behind reads the entry that follows a sequence on its subject. The last entry is known. A leader that returns an
// entry above the sequence has, or had, all entries between: so if the firing does not follow its generation, it was
// removed or never stored. A leader that returns none does not know the last entry, or that one was removed meanwhile.
func (s *Stream) behind(ctx context.Context, subject string, sequence uint64, last timer.State) (timer.State, error) {
	m, err := s.known(ctx, subject, sequence+1)
	if err != nil {
		return timer.State{}, err
	}
	see := s.Entries().State(m)
	see.LastSeq = max(last.LastSeq, m.Sequence)
	return see, nil
}

// known reads the first entry of a subject from a sequence on, which must exist.
func (s *Stream) known(ctx context.Context, subject string, from uint64) (jsapi.Message, error) {
	m, ok, err := s.Entries().Next(ctx, subject, from)
	if err == nil && !ok {
		err = errDeposed
	}
	return m, err
}

// Examined notes the state that was read for a timer in doubt, and decides the next step. Local is this host's clock.
func (s *Stream) Examined(a *Alarm, found timer.State, now leader.Time, local time.Time) Step {
	if found.Entry.Kind == entry.Unproven {
		s.ReadKeys(local)
	}
	switch behind := found.Behind(a.Generation); {
	case !behind:
		a.behind = time.Time{}
	case a.behind.IsZero():
		a.behind = local
	default:
		found.Lasting = local.Sub(a.behind) >= timer.StaleFor
	}
	var claimTimeout time.Duration
	if by := found.Entry.By; by != "" {
		claimTimeout = s.ClaimTimeout(by)
	}
	next := a.judge(found, s.Instance, now.Stamp(), claimTimeout)
	switch {
	case next.Kind == LetGo && a.Swept() && !found.None && !found.Entry.Debounced():
		// entries before the last one should have been removed
		a.Stage, a.Entry, a.Keep = Settled, found.Sequence, true
		return Step{Kind: Remove}
	case next.Kind == Restart:
		a.Stage = Pending
	}
	return next
}

// judge decides about a timer by the last entry of its subject. By is this instance. ClaimTimeout is the time that the
// instance in the entry is left. A deposed leader that does not know it returns an older entry, or none: it is not
// believed.
func (a *Alarm) judge(found timer.State, by string, now time.Time, claimTimeout time.Duration) Step {
	e, letGo := found.Entry, Step{Kind: LetGo}
	switch {
	case found.Behind(a.Generation) && !found.Lasting && !found.Created.After(a.At), // that proves nothing
		found.Sequence > a.Generation && e.Kind == entry.Unproven:
		return Step{Kind: BackOff}
	case found.None, found.Sequence < a.Generation:
		return letGo // if an older entry is the last again, a power cut or a restore removed the generation
	case found.Sequence == a.Generation:
		if !found.At.Equal(a.At) || e.Kind != entry.Set {
			return letGo // it is from another history of the stream
		}
		return Step{Kind: Restart}
	case !e.Fires(a.Generation), found.Settled:
		return letGo // another set, a cancel, or an outcome
	}
	if id, err := message.ParseID(e.Fired().ID); err == nil && !id.At.Equal(a.At) {
		return letGo // it is from another history of the stream
	}
	if until := found.At.Add(claimTimeout); e.By != by && now.Before(until) {
		return Step{Kind: Hold, At: leader.At(until)} // another instance has fired it, and may be delivering it
	}
	return Step{Kind: Deliver}
}
