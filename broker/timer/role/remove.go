package role

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// RemoveEntries removes the entries of a subject up to r.Entry, the oldest first: see package timer for the order. Some
// entries before r.Entry must stay: see the method stays. If one of them is the entry of a round, and r.Keep is false,
// r.Entry stays as well, and RemoveEntries returns errUnsettled.
//
// If r.Firing is known, the generation is removed without a read, and so is the firing if an outcome follows it. If
// r.Cancelled is known and r.Keep is true, a replica is asked for the cancelled entry. If that entry is a plain set,
// only the set is removed, without a read from the leader. Older entries that are still stored are removed later, with
// the cancel.
//
// EarlierRemoved is true if no entry of the subject is left before r.Entry, and false if that is unknown. With
// r.OnlyEntry, it is always true.
func (s *Stream) RemoveEntries(
	ctx context.Context, subject string, generation uint64, r Removal,
) (earlierRemoved bool, err error) {
	switch {
	case r.Entry == 0:
		return false, nil
	case r.OnlyEntry:
		return true, s.removeEntry(ctx, r.Entry)
	case r.ProbablyOldest && s.isFirst(ctx, subject, r.Entry):
		if r.Keep {
			return true, nil
		}
		return true, s.removeEntry(ctx, r.Entry)
	case r.Cancelled != 0 && r.Keep:
		switch in, err := s.copyFrom(ctx, subject, r.Cancelled); {
		case err == nil && in.Sequence == r.Cancelled && s.isPlainSet(in):
			return false, s.removeEntry(ctx, r.Cancelled)
		case err == nil && in.Sequence == r.Entry: // the set is removed already
			return false, nil
		}
	case r.Firing != 0:
		if err := s.removeEntry(ctx, generation); err != nil {
			return false, err
		}
		if r.Entry > r.Firing { // an entry after the firing stays
			return true, s.removeEntry(ctx, r.Firing)
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
	ctx context.Context, subject string, generation uint64, r Removal,
) (earlierRemoved bool, err error) {
	from := uint64(1)
	var kept uint64     // the sequence of the newest entry so far that stays; zero for none
	keepsRound := false // the entries that stay include a round's entry
	for {
		m, ok, err := s.Entries().Next(ctx, subject, from)
		switch {
		case err != nil:
			return false, err
		case !ok:
			return false, nil // r.Entry is removed already, or a deposed leader lacks r.Entry, and the sweep will find it
		case m.Sequence > r.Entry || m.Sequence == r.Entry && r.Keep:
			return kept == 0, nil
		}
		if m.Sequence < r.Entry {
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
		if err := s.removeEntry(ctx, m.Sequence); err != nil || m.Sequence == r.Entry {
			return err == nil && kept == 0, err
		}
	}
}

// stays reports whether an entry must stay, and whether it is a round's entry. Four kinds stay: an unproven entry, the
// firing of another generation unless its outcome follows, the entry of another round that has fired, and the entry
// that records this firing. Kept is the sequence of the previous entry that stays; zero for none.
func (s *Stream) stays(
	ctx context.Context, m jsapi.Message, generation, kept uint64,
) (stays, isRound bool, err error) {
	e := entry.Parse(s.Policy, m.Incoming(s.Name()))
	isRound = e.Series != nil
	switch {
	case e.Kind == entry.Unproven, kept > 0 && e.Fires(kept):
		return true, isRound, nil
	case e.Kind == entry.Fired && e.Generation == generation, e.Kind != entry.Fired && !isRound,
		isRound && m.Sequence == generation:
		return false, isRound, nil
	}
	next, ok, err := s.Entries().Next(ctx, m.Subject, m.Sequence+1)
	if err != nil || !ok {
		return !isRound, isRound, err
	}
	nextEntry := entry.Parse(s.Policy, next.Incoming(s.Name()))
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
