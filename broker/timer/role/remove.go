package role

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer/entry"
)

// RemoveEntries removes the entries of a subject up to the last one, the oldest first. Each delete waits for the answer
// to the one before. After a crash, a server may have forgotten any number of the last deletes, but a recovered entry
// is always followed by the entries that came after it. The firings of other generations stay: only an instance that
// has settled one removes it, even if a client has put something over it. A round that has fired also stays, and so
// does the entry that records it, which is the set of the next round. That entry must not become the last one again, so
// the entry over it stays as long (errUnsettled).
//
// Known entries are removed without being read: see Removal.Fired. No entry is left between the generation and its
// firing, and none of this timer before that. A server that was killed may have recovered an entry: so the last entry
// of a subject is removed only if it is the first that the leader has. An entry that stays behind the firing hides a
// recovered entry, and is removed after it.
//
// Alone reports whether no entry stays on the subject before the last one.
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

// isFirst reports whether a replica confirms that no entry is left before a generation. New entries never appear before
// it, so a lagging replica may have too many of them, and never too few. A replica that lacks the generation proves
// nothing. An entry that a killed server has recovered is removed together with later entries.
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
	var before uint64 // the entry before, if it stays
	rounds := false   // one of the entries that stay is a round
	for {
		m, ok, err := s.Entries().Next(ctx, subject, from)
		switch {
		case err != nil:
			return false, err
		case !ok:
			return false, nil // the last is removed; or a deposed leader does not know it, and the sweep finds it
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

// stays reports whether an entry must stay: it may be the firing of another generation, which is not known to be
// settled, or it is a round that has fired, or the next round. Before is the entry before it, if that stays.
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
