package store

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Entries reads the entries of the timers' stream.
type Entries struct {
	API    jsapi.Client
	Policy message.Policy
	Sample func(ctx context.Context, stream string) (lane.Sample, error) // asks the stream's leader for its state
}

// Entries returns a reader of the timers' entries.
func (t *Timers) Entries() Entries {
	return Entries{API: t.API, Policy: t.Policy, Sample: t.quorateSample}
}

// LastEntry reads the last entry of a timer's subject from the leader of the stream. A deposed leader may return no
// entry, or one older than the generation. So in these cases LastEntry reads the end of the stream from a leader that a
// majority follows, and then the last entry again. Without such a leader, LastEntry returns ErrLeader.
func LastEntry(ctx context.Context, from Entries, subject string, generation uint64) (timer.State, error) {
	stream := from.Policy.Names.TimersStream()
	var end lane.Sample // zero if the end of the stream need not be read
	m, err := from.API.Last(ctx, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence < generation {
		if end, err = from.Sample(ctx, stream); err != nil {
			return timer.State{}, err
		}
		if !end.Quorate {
			return timer.State{}, ErrLeader
		}
		if m, err = from.API.Last(ctx, stream, subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			return timer.State{NoEntry: true, LastSeq: end.LastSeq, Created: end.Created}, nil
		}
	}
	if err == nil && m.Subject != subject {
		err = ErrLeader
	}
	if err != nil {
		return timer.State{LastSeq: end.LastSeq, Created: end.Created}, err
	}
	state := from.State(m)
	state.LastSeq, state.Created = max(end.LastSeq, m.Sequence), end.Created
	return state, nil
}

// Next reads the first entry of a timer's subject at or above a sequence. Ok is false if the leader has no such entry.
// Next does not check whether a majority follows the leader.
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

// State returns the state that an entry represents.
func (e Entries) State(m jsapi.Message) timer.State {
	in := m.Incoming(e.Policy.Names.TimersStream())
	return timer.State{
		LastSeq: m.Sequence, Sequence: m.Sequence, At: m.Time, Entry: entry.Parse(e.Policy, in), Message: in,
	}
}
