package role

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// removeEntries removes the entries of a subject that r describes, the oldest first: see package timer for the order.
// Some entries before r.entry must stay: see the method stays. If one of them is the entry of a round, r.entry stays as
// well, and removeEntries returns errUnsettled instead of removing it.
//
// If r.firing is known, the generation is removed without a read, and so is the firing if an outcome follows it. If
// r.cancelled is known and the cancel itself stays, a replica is asked for the cancelled entry. If that entry is a
// plain set, only the set is removed, without a read from the leader. Older entries that are still stored are removed
// later, with the cancel.
//
// EarlierRemoved is true if no entry of the subject is left before r.entry, and false if that is unknown. If only
// r.entry is to be removed, it is always true.
func (s *Stream) removeEntries(
	ctx context.Context, subject string, generation uint64, r removal,
) (earlierRemoved bool, err error) {
	switch {
	case r.entry == 0:
		return false, nil
	case r.reach == onlyThis:
		return true, s.removeEntry(ctx, r.entry)
	case r.probablyOldest && s.isFirst(ctx, subject, r.entry):
		if r.reach == below {
			return true, nil
		}
		return true, s.removeEntry(ctx, r.entry)
	case r.cancelled != 0 && r.reach == below:
		switch in, err := s.copyFrom(ctx, subject, r.cancelled); {
		case err == nil && in.Sequence == r.cancelled && s.isPlainSet(in):
			return false, s.removeEntry(ctx, r.cancelled)
		case err == nil && in.Sequence == r.entry: // the set is removed already
			return false, nil
		}
	case r.firing != 0:
		if err := s.removeEntry(ctx, generation); err != nil {
			return false, err
		}
		if r.entry > r.firing { // an entry after the firing stays
			return true, s.removeEntry(ctx, r.firing)
		}
	}
	return s.removeAll(ctx, subject, generation, r)
}

// isFirst reports whether, according to a replica, no entry is left before a generation. A lagging replica may have
// entries that are removed already, but it has all entries before the generation. A replica without the generation
// confirms nothing. If a killed server recovers an entry afterwards, that entry is removed before the last one.
func (s *Stream) isFirst(ctx context.Context, subject string, generation uint64) bool {
	in, err := s.copyFrom(ctx, subject, 1)
	return err == nil && in.Sequence == generation
}

// copyFrom reads the first entry of a subject at or above a sequence from a replica.
func (s *Stream) copyFrom(ctx context.Context, subject string, from uint64) (message.Incoming, error) {
	var in message.Incoming
	err := s.askReplica(ctx, func(ctx context.Context) (err error) {
		in, err = s.Copies.FirstOf(ctx, s.Name(), subject, from)
		return err
	})
	return in, err
}

// isPlainSet reports whether an entry is the set of a timer that fires once and belongs to no run.
func (s *Stream) isPlainSet(in message.Incoming) bool {
	e := entry.Parse(s.Policy, in)
	return e.Kind == entry.Set && e.Series == nil && !e.Debounced()
}

// removeAll reads the entries of a subject in order, and removes the entries that need not stay.
func (s *Stream) removeAll(
	ctx context.Context, subject string, generation uint64, r removal,
) (earlierRemoved bool, err error) {
	from := uint64(1)
	var kept uint64     // the sequence of the newest entry so far that stays; zero for none
	keepsRound := false // the entries that stay include a round's entry
	for {
		m, ok, err := s.entries().Next(ctx, subject, from)
		switch {
		case err != nil:
			return false, err
		case !ok:
			return false, nil // r.entry is removed already, or a deposed leader lacks r.entry, and the sweep will find it
		case m.Sequence > r.entry || m.Sequence == r.entry && r.reach == below:
			return kept == 0, nil
		}
		if m.Sequence < r.entry {
			stays, isRound, err := s.stays(ctx, m, generation, kept)
			if err != nil {
				return false, err
			}
			if stays {
				from, kept, keepsRound = m.Sequence+1, m.Sequence, keepsRound || isRound
				continue
			}
		} else if keepsRound {
			return false, errUnsettled
		}
		if err := s.removeEntry(ctx, m.Sequence); err != nil || m.Sequence == r.entry {
			return err == nil && kept == 0, err
		}
	}
}

// stays reports whether an entry must stay, and whether it is a round's entry. Four kinds stay: an unproven entry, the
// firing of another generation unless its outcome follows, the entry of another round that has fired, and the entry
// that records this firing. Kept is the sequence of the previous entry that stays; zero for none.
func (s *Stream) stays(
	ctx context.Context, m message.Incoming, generation, kept uint64,
) (stays, isRound bool, err error) {
	e := entry.Parse(s.Policy, m)
	isRound = e.Series != nil
	switch {
	case e.Kind == entry.Unproven, kept > 0 && e.Fires(kept):
		return true, isRound, nil
	case e.Kind == entry.Fired && e.Generation == generation, e.Kind != entry.Fired && !isRound,
		isRound && m.Sequence == generation:
		return false, isRound, nil
	}
	next, ok, err := s.entries().Next(ctx, m.Subject, m.Sequence+1)
	if err != nil || !ok {
		return !isRound, isRound, err
	}
	nextEntry := entry.Parse(s.Policy, next)
	if isRound {
		return nextEntry.Fires(m.Sequence), isRound, nil
	}
	return nextEntry.Kind != entry.Over || nextEntry.Generation != e.Generation, isRound, nil
}

func (s *Stream) removeEntry(ctx context.Context, sequence uint64) error {
	err := s.API.Delete(ctx, s.Name(), sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
