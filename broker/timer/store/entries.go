package store

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
		s, failed := from.Sample(ctx, stream)
		switch {
		case failed != nil:
			return found, in, failed
		case !s.Quorate:
			return found, in, ErrLeader
		}
		found.LastSeq, found.Created = s.LastSeq, s.Created
		if m, err = from.API.Last(ctx, stream, subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			found.None = true
			return found, in, nil
		}
	}
	switch {
	case err != nil:
		return found, in, err
	case m.Subject != subject:
		return found, in, ErrLeader
	}
	in = m.Incoming(stream)
	found.LastSeq = max(found.LastSeq, m.Sequence)
	found.Sequence, found.At, found.Entry = m.Sequence, m.Time, from.Policy.ParseTimer(in)
	return found, in, nil
}

// Next reads the first entry of a timer's subject from a sequence on. Ok is false where the stream's leader, or one
// that was deposed and does not know it, has none.
func (e Entries) Next(ctx context.Context, subject string, from uint64) (m jsapi.Message, ok bool, err error) {
	m, err = e.API.Next(ctx, e.Policy.Names.TimersStream(), from, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return m, false, nil
	case err == nil && (m.Subject != subject || m.Sequence < from):
		err = ErrLeader
	}
	return m, err == nil, err
}

// Found is an entry that was read with Next.
func (e Entries) Found(m jsapi.Message) (timer.Found, message.Incoming) {
	in := m.Incoming(e.Policy.Names.TimersStream())
	return timer.Found{LastSeq: m.Sequence, Sequence: m.Sequence, At: m.Time, Entry: e.Policy.ParseTimer(in)}, in
}
