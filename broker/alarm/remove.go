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
// removes it, whatever a client has put over it.
func (s *Stream) RemoveEntries(ctx context.Context, subject string, generation uint64, what Removal) error {
	stream, from := s.Name(), uint64(1)
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
			stays, err := s.stays(ctx, m, generation)
			if err != nil {
				return err
			}
			if stays {
				from = m.Sequence + 1
				continue
			}
		}
		if err := s.removeEntry(ctx, stream, m.Sequence); err != nil || m.Sequence == what.Entry {
			return err
		}
	}
	return s.removeEntry(ctx, stream, what.Entry)
}

// stays reports whether an entry is the firing of another generation, or may be, and none that is known to be settled.
func (s *Stream) stays(ctx context.Context, m jsapi.Message, generation uint64) (bool, error) {
	e := s.Policy.ParseTimer(m.Incoming(s.Name()))
	if e.Kind != message.FiredEntry || e.Generation == generation {
		return e.Kind == message.UnprovenEntry, nil
	}
	next, err := s.API.Next(ctx, s.Name(), m.Sequence+1, m.Subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil
	}
	over := s.Policy.ParseTimer(next.Incoming(s.Name()))
	return over.Kind != message.OverEntry || over.Generation != e.Generation, err
}

func (s *Stream) removeEntry(ctx context.Context, stream string, sequence uint64) error {
	err := s.API.Delete(ctx, stream, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
