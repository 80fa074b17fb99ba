package control

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// Entries is what it takes to read the entries of the timers' stream.
type Entries struct {
	API    jsapi.Client
	Policy message.Policy
	Sample func(ctx context.Context, stream string) (lane.Sample, error) // the stream's state, as its leader gives it
}

// LastEntry reads the last entry of a timer's subject from the leader of the stream. An entry that is older than the
// generation, or none, is believed only when a leader that a majority follows has said how far its stream reaches, and
// then says so again. It returns ErrLeader where there is no such leader.
func LastEntry(
	ctx context.Context, from Entries, subject string, generation uint64,
) (found timer.Found, in message.Incoming, err error) {
	stream := from.Policy.Names.TimersStream()
	m, err := from.API.Last(ctx, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence < generation {
		s, err := from.Sample(ctx, stream)
		if err != nil {
			return found, in, err
		}
		if !s.Quorate {
			return found, in, ErrLeader
		}
		found.LastSeq, found.Created = s.LastSeq, s.Created
		if m, err = from.API.Last(ctx, stream, subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			found.None = true
			return found, in, nil
		} else if err != nil {
			return found, in, err
		}
	} else if err != nil {
		return found, in, err
	}
	if m.Subject != subject {
		return found, in, ErrLeader
	}
	in = m.Incoming(stream)
	found.LastSeq = max(found.LastSeq, m.Sequence)
	found.Sequence, found.At, found.Entry = m.Sequence, m.Time, from.Policy.ParseTimer(in)
	return found, in, nil
}
