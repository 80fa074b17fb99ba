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

// look reads the last entry of the subject from the leader or, where another client has put something over what tells
// more, that: it stands right behind the generation. So a wish finds what it has written although a leader that was
// deposed has refused it, and what has fired, or was cancelled, before something else was set.
func (a *attempt) look(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	a.found, a.in, err = LastEntry(ctx, a.Entries(), a.subject, a.Generation)
	about, known := a.expects, a.tried
	if !known && a.Generation > 0 && a.Verb != timer.Get {
		about, known = a.Generation, true
	}
	if err != nil || !known || a.found.None || a.found.Sequence <= about || a.tells(a.found.Entry) {
		return err
	}
	m, ok, err := a.Entries().Next(ctx, a.subject, about+1)
	if !ok {
		return err
	}
	if behind, in := a.Entries().Found(m); a.tells(behind.Entry) {
		a.found, a.in = behind, in
	}
	return nil
}

// tells reports whether an entry decides the wish, whatever was put over it.
func (a *attempt) tells(e message.Entry) bool {
	switch g := a.Generation; {
	case e.Word != "" && e.Word == a.Word:
		return true
	case a.Verb == timer.Set || g == 0: // what stands there now matters, too
		return false
	case e.Kind == message.CancelEntry:
		return e.Cancelled == g
	case e.Kind == message.OverEntry:
		return e.Generation == g
	default:
		return e.Kind == message.UnprovenEntry || e.Fires(g)
	}
}
