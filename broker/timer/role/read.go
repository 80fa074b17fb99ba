package role

import (
	"context"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// readState reads the state of a generation from the leader of the stream: the last entry of its subject. If a client
// has published over the generation's firing, readState returns the firing or its outcome instead, or an unproven entry
// in the place of the firing.
func (s *Stream) readState(ctx context.Context, subject string, generation uint64) (timer.State, error) {
	last, err := s.entries().LastEntry(ctx, subject, generation, false)
	if err == nil && last.Entry.Kind != entry.Fired && last.Entry.Fires(generation) {
		return s.roundState(ctx, last, subject, generation)
	}
	if err != nil || !mayHideFiring(last, generation) {
		return last, err
	}
	firing, err := s.entryAfter(ctx, subject, generation, last)
	switch e := firing.Entry; {
	case err != nil:
		return timer.State{}, err
	case e.Kind == entry.Unproven:
		return firing, nil
	case !e.Fires(generation): // the firing was removed, or never stored
		return last, nil
	case e.Kind != entry.Fired:
		return s.roundState(ctx, firing, subject, generation)
	}
	next, err := s.entryAfter(ctx, subject, firing.Sequence, last)
	if e := next.Entry; err == nil && e.Kind == entry.Over && e.Generation == generation {
		return next, nil // the generation is settled, and a crash came before the removal of its firing
	}
	return firing, err
}

// readRoundState is like readState, for a round whose entries this process has not read yet. Usually the round's own
// entry is the first of its subject, which proves that the earlier rounds are settled. Then readRoundState does not
// read later entries. If a later entry exists, the stream refuses the firing, and the worker calls readState.
func (s *Stream) readRoundState(ctx context.Context, subject string, generation uint64) (timer.State, error) {
	m, ok, err := s.entries().Next(ctx, subject, 1)
	if err != nil || !ok || m.Sequence != generation {
		return s.readState(ctx, subject, generation)
	}
	state := s.entries().State(m)
	state.IsFirst = true
	return state, nil
}

// roundState returns the state of a fired round. Next is the entry of the next round, which records the firing. The
// round is settled if, and only if, its own entry is removed. A leader that has the next round's entry also has the
// round's own entry, unless the own entry was removed.
func (s *Stream) roundState(
	ctx context.Context, next timer.State, subject string, generation uint64,
) (timer.State, error) {
	m, err := s.nextEntry(ctx, subject, generation)
	next.Settled = err == nil && m.Sequence >= next.Sequence
	return next, err
}

// readEarlierRounds reads the entries of a series up to the entry of a generation. Settled is true if all earlier
// rounds are settled. EarlierRemoved is true if all earlier entries are removed. The entry of the generation does not
// suffice: after a move or a pause, an older entry records the firing of the previous round.
func (s *Stream) readEarlierRounds(
	ctx context.Context, subject string, series, generation uint64,
) (settled, earlierRemoved bool, err error) {
	for from, previous := uint64(1), uint64(0); ; {
		m, err := s.nextEntry(ctx, subject, from)
		if err != nil {
			return false, false, err
		}
		if previous == 0 && m.Sequence == generation {
			return true, true, nil
		}
		e := entry.Parse(s.Policy, m)
		if previous > 0 && (e.Kind == entry.Unproven || e.Fires(previous) && e.Fired().Origin().Series == series) {
			return false, false, nil
		}
		if m.Sequence >= generation {
			return true, false, nil
		}
		from, previous = m.Sequence+1, m.Sequence
	}
}

// mayHideFiring reports whether the firing of a generation may lie before the last entry of its subject.
func mayHideFiring(last timer.State, generation uint64) bool {
	if last.NoEntry || last.Sequence <= generation {
		return false
	}
	switch e := last.Entry; e.Kind {
	case entry.Fired, entry.Over:
		return e.Generation != generation
	case entry.Cancel:
		return e.Cancelled != generation // a cancel that directly follows the generation hides no firing
	case entry.Unproven:
		return false // Alarm.judge backs off until the key of the entry is known
	}
	return true
}

// entryAfter reads the entry of a subject that directly follows a sequence. Last is the last entry of the subject, as
// read before. If no entry follows, entryAfter returns errDeposed. Either the leader lacks the last entry, or that
// entry was just removed.
func (s *Stream) entryAfter(
	ctx context.Context, subject string, sequence uint64, last timer.State,
) (timer.State, error) {
	m, err := s.nextEntry(ctx, subject, sequence+1)
	if err != nil {
		return timer.State{}, err
	}
	state := s.entries().State(m)
	state.LastSeq = max(last.LastSeq, m.Sequence)
	return state, nil
}

// nextEntry reads the first entry of a subject at or above a sequence. It returns errDeposed if there is none.
func (s *Stream) nextEntry(ctx context.Context, subject string, from uint64) (message.Incoming, error) {
	m, ok, err := s.entries().Next(ctx, subject, from)
	if err == nil && !ok {
		err = errDeposed
	}
	return m, err
}
