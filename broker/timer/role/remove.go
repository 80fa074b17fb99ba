package role

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer/entry"
)

// RemoveEntries removes the entries of a subject up to the last one, the oldest first, each after the answer for the
// one before it. After a crash, a server may have forgotten any number of the last deletes: so whatever it forgets, no
// entry stands again without those that came after it. The firings of other generations stay: only who has settled one
// removes it, whatever a client has put over it. So does a round that has fired, with the entry that says so, which is
// the set of the next: it must not be the last one again, so what was put over it stays as long (errUnsettled).
//
// Where the entries are known, they are not read before: see Removal.Fired. Nothing is left between the generation and
// its firing, and nothing before that the timer has to do with. A server that was killed may have an entry back that
// was removed before: so the last entry of a subject is removed only as the first one that the leader has. Where an
// entry stays behind the firing, it hides what is back, and goes after that itself.
//
// Alone reports whether nothing stays on the subject before the last entry.
func (s *Stream) RemoveEntries(
	ctx context.Context, subject string, generation uint64, what Removal,
) (alone bool, err error) {
	switch {
	case what.Entry == 0:
		return false, nil
	case what.Alone:
		return true, s.removeEntry(ctx, what.Entry)
	case what.Armed && s.isFirst(ctx, subject, what.Entry):
		return true, nil
	case what.Fired != 0:
		if err := s.removeEntry(ctx, generation); err != nil {
			return false, err
		}
		if what.Entry > what.Fired { // which stays
			return true, s.removeEntry(ctx, what.Fired)
		}
	}
	return s.removeAll(ctx, subject, generation, what)
}

// isFirst reports whether a replica says that nothing is left before a generation. Entries before it only go, so one
// that lags may still have some, and never lacks one; and if it lacks the generation, that proves nothing. An entry
// that a killed server has back is removed with what comes after it.
func (s *Stream) isFirst(ctx context.Context, subject string, generation uint64) bool {
	if !s.asksReplicas(time.Now()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	first, err := s.Copies.FirstOf(ctx, s.Name(), subject)
	s.noteCopies(err)
	return err == nil && first.Sequence == generation
}

// removeAll reads the entries of a subject from the first one on, and removes them.
func (s *Stream) removeAll(
	ctx context.Context, subject string, generation uint64, what Removal,
) (alone bool, err error) {
	from := uint64(1)
	var before uint64 // the entry before, if that stays
	rounds := false   // one of those that stay is a round
	for {
		m, ok, err := s.Entries().Next(ctx, subject, from)
		switch {
		case err != nil:
			return false, err
		case !ok:
			return false, nil // the last is gone; or a leader that was deposed does not know it, and the sweep finds it
		case m.Sequence > what.Entry || m.Sequence == what.Entry && what.Keep:
			return before == 0, nil
		}
		if m.Sequence < what.Entry {
			stays, round, err := s.stays(ctx, m, generation, before)
			if err != nil {
				return false, err
			}
			if stays {
				from, before, rounds = m.Sequence+1, m.Sequence, rounds || round
				continue
			}
		} else if rounds {
			return false, errUnsettled
		}
		if err := s.removeEntry(ctx, m.Sequence); err != nil || m.Sequence == what.Entry {
			return err == nil && before == 0, err
		}
	}
}

// stays reports whether an entry is the firing of another generation, or may be, and none that is known to be settled;
// or a round that has fired, or the next. Before is the entry before it, if that stays.
func (s *Stream) stays(
	ctx context.Context, m jsapi.Message, generation, before uint64,
) (stays, round bool, err error) {
	e := entry.Parse(s.Policy, m.Incoming(s.Name()))
	round = e.Recurs != nil
	switch {
	case e.Kind == entry.Unproven, before > 0 && e.Fires(before):
		return true, round, nil
	case e.Kind == entry.Fired && e.Generation == generation, e.Kind != entry.Fired && !round,
		round && m.Sequence == generation:
		return false, round, nil
	}
	next, ok, err := s.Entries().Next(ctx, m.Subject, m.Sequence+1)
	if err != nil || !ok {
		return !round, round, err
	}
	after := entry.Parse(s.Policy, next.Incoming(s.Name()))
	if round {
		return after.Fires(m.Sequence), round, nil
	}
	return after.Kind != entry.Over || after.Generation != e.Generation, round, nil
}

func (s *Stream) removeEntry(ctx context.Context, sequence uint64) error {
	err := s.API.Delete(ctx, s.Name(), sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
