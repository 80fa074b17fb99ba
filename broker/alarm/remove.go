package alarm

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

// RemoveEntries removes the entries of a subject up to the last one, the oldest first, each after the answer for the
// one before it. After a crash, a server may have forgotten any number of the last deletes: so whatever it forgets, no
// entry stands again without those that came after it. The firings of other generations stay: only who has settled one
// removes it, whatever a client has put over it. So does a round that has fired, with the entry that says so, which is
// the set of the next: it must not be the last one again, so what was put over it stays as long (errUnsettled).
func (s *Stream) RemoveEntries(ctx context.Context, subject string, generation uint64, what Removal) error {
	if what.Alone {
		return s.removeEntry(ctx, what.Entry)
	}
	from := uint64(1)
	var before uint64 // the entry before, if that stays
	rounds := false   // one of those that stay is a round
	for {
		m, ok, err := s.Entries().Next(ctx, subject, from)
		switch {
		case err != nil:
			return err
		case !ok:
			return nil // the last is gone; or a leader that was deposed does not know it, and the sweep finds it
		case m.Sequence > what.Entry || m.Sequence == what.Entry && what.Keep:
			return nil
		}
		if m.Sequence < what.Entry {
			stays, round, err := s.stays(ctx, m, generation, before)
			if err != nil {
				return err
			}
			if stays {
				from, before, rounds = m.Sequence+1, m.Sequence, rounds || round
				continue
			}
		} else if rounds {
			return errUnsettled
		}
		if err := s.removeEntry(ctx, m.Sequence); err != nil || m.Sequence == what.Entry {
			return err
		}
	}
}

// stays reports whether an entry is the firing of another generation, or may be, and none that is known to be settled;
// or a round that has fired, or the next. Before is the entry before it, if that stays.
func (s *Stream) stays(
	ctx context.Context, m jsapi.Message, generation, before uint64,
) (stays, round bool, err error) {
	e := s.Policy.ParseTimer(m.Incoming(s.Name()))
	round = e.Request.Recurs != nil
	switch {
	case e.Kind == message.UnprovenEntry, before > 0 && e.Fires(before):
		return true, round, nil
	case e.Kind == message.FiredEntry && e.Generation == generation, e.Kind != message.FiredEntry && !round,
		round && m.Sequence == generation:
		return false, round, nil
	}
	next, ok, err := s.Entries().Next(ctx, m.Subject, m.Sequence+1)
	if err != nil || !ok {
		return !round, round, err
	}
	after := s.Policy.ParseTimer(next.Incoming(s.Name()))
	if round {
		return after.Fires(m.Sequence), round, nil
	}
	return after.Kind != message.OverEntry || after.Generation != e.Generation, round, nil
}

func (s *Stream) removeEntry(ctx context.Context, sequence uint64) error {
	err := s.API.Delete(ctx, s.Name(), sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
