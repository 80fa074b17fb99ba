package alarm

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// RemoveEntries removes the entries of a subject up to the last one, the oldest first, each after the answer for the
// one before it. After a crash, a server may have forgotten any number of the last deletes: so whatever it forgets, no
// entry stands again without those that came after it.
func (s *Stream) RemoveEntries(ctx context.Context, subject string, what Removal) error {
	stream := s.Name()
	for !what.Alone {
		m, err := s.API.Next(ctx, stream, 1, subject)
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
		if err := s.removeEntry(ctx, stream, m.Sequence); err != nil || m.Sequence == what.Entry {
			return err
		}
	}
	return s.removeEntry(ctx, stream, what.Entry)
}

func (s *Stream) removeEntry(ctx context.Context, stream string, sequence uint64) error {
	err := s.API.Delete(ctx, stream, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}
