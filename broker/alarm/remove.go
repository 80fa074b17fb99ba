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
// removes it, whatever a client has put over it. So does a round that has fired, with the entry that says so.
func (s *Stream) RemoveEntries(ctx context.Context, subject string, generation uint64, what Removal) error {
	stream, from, round := s.Name(), uint64(1), uint64(0)
	for !what.Alone {
		m, err := s.API.Next(ctx, stream, from, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil // the last is gone; or a leader that was deposed does not know it, and the sweep finds it
		case err != nil:
			return err
		case m.Subject != subject:
			return errDeposed
		case m.Sequence > what.Entry || m.Sequence == what.Entry && what.Keep:
			return nil
		}
		if m.Sequence < what.Entry {
			stays, err := s.stays(ctx, m, generation, round)
			if err != nil {
				return err
			}
			if stays {
				from, round = m.Sequence+1, m.Sequence
				continue
			}
		}
		if err := s.removeEntry(ctx, stream, m.Sequence); err != nil || m.Sequence == what.Entry {
			return err
		}
	}
	return s.removeEntry(ctx, stream, what.Entry)
}

// stays reports whether an entry is the firing of another generation, or may be, and none that is known to be settled;
// or a round that has fired. Before is the entry before it, if that stays.
func (s *Stream) stays(ctx context.Context, m jsapi.Message, generation, before uint64) (bool, error) {
	e := s.Policy.ParseTimer(m.Incoming(s.Name()))
	set := e.Request.Recurs != nil
	switch {
	case e.Kind == message.UnprovenEntry, before > 0 && before != generation && e.Fires(before):
		return true, nil
	case e.Kind == message.FiredEntry && e.Generation == generation, e.Kind != message.FiredEntry && !set,
		set && m.Sequence == generation:
		return false, nil
	}
	next, err := s.API.Next(ctx, s.Name(), m.Sequence+1, m.Subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return !set, nil
	}
	after := s.Policy.ParseTimer(next.Incoming(s.Name()))
	if set {
		return after.Fires(m.Sequence), err
	}
	return after.Kind != message.OverEntry || after.Generation != e.Generation, err
}

func (s *Stream) removeEntry(ctx context.Context, stream string, sequence uint64) error {
	err := s.API.Delete(ctx, stream, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
