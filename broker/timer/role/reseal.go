package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// This file reseals the pending entries of the timers' stream that have an earlier key. The owner of the lane does so
// with a pass of the sweep. So that key can be taken away, although a round may be a year away and a pause has no end.
// While instances disagree about the first key, the owner's counts.

// seals counts the keys that a pass finds on entries.
type seals struct {
	resealed int
	err      error           // the error that made the pass stop resealing
	unopened int             // entries that claim to be a broker's, under an unknown key
	keys     map[string]bool // the ids of these keys
}

// Unopened returns the number of entries that claim to be a broker's under an unknown key, and the ids of such keys.
func (p Pass) Unopened() (entries int, keys map[string]bool) { return p.seals.unopened, p.seals.keys }

// Resealed returns the number of entries that the pass has resealed, and the error that made it stop; nil for none.
func (p Pass) Resealed() (entries int, err error) { return p.seals.resealed, p.seals.err }

// Outlives reports whether an entry is pending and sealed with an earlier key.
func (s *Stream) Outlives(e entry.Entry, in message.Incoming) bool {
	return e.Stands() && entry.ClaimsOurs(s.Policy, in) && s.Policy.Keys.UseOfMessage(in.Header) == message.LaterKey
}

// judge checks the key of an entry. Done reports whether the pass skips the entry: it was resealed, and is read again
// under its new sequence, or it cannot be opened. Again reports whether a later pass must check it. The lane may not
// have judged entries yet that were stored after before.
func (p *seals) judge(ctx context.Context, s *Stream, m lane.Stored, before time.Time) (done, again bool) {
	in := m.Incoming(s.Name())
	in.BodyLeft = true
	if !entry.ClaimsOurs(s.Policy, in) {
		return false, false
	}
	if s.Policy.Keys.UseOfMessage(in.Header) == message.OtherKey {
		if m.At.After(before) {
			return true, true // the lane removes it if it is a forgery
		}
		if p.unopened++; p.keys == nil {
			p.keys = make(map[string]bool)
		}
		if len(p.keys) < maxUnknownKeys {
			p.keys[message.KeyID(in.Header[message.HeaderSeal][0])] = true
		}
		s.ReadKeys(time.Now())
		return true, true
	}
	if !s.Outlives(entry.Parse(s.Policy, in), in) {
		return false, false
	}
	if p.err != nil { // the stream accepts no entry
		return false, true
	}
	stored, err := s.reseal(ctx, m)
	if stored {
		p.resealed++
	}
	p.err = err
	return stored, err != nil
}

// maxUnknownKeys bounds the ids that are reported: any client may write some.
const maxUnknownKeys = 8

// reseal stores an entry again in its own place, under the key that seals now. Stored is false if another entry is the
// last one by now, or if the entry stays as it is.
func (s *Stream) reseal(ctx context.Context, m lane.Stored) (stored bool, err error) {
	last, err := s.API.Last(ctx, s.Name(), m.Subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Sequence != m.Sequence {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the last entry of %s: %w", m.Subject, err)
	}
	header, ok := entry.Resealed(s.Policy, last.Incoming(s.Name()), time.Now())
	if !ok {
		return false, nil
	}
	reply := s.Publish(ctx, &nats.Msg{Subject: m.Subject, Header: nats.Header(header), Data: last.Data})
	if outcome := reply.Outcome(); outcome == jsapi.Conflict || outcome == jsapi.Undecided {
		return false, nil // it fires, or a client was faster
	}
	if err := reply.Problem(); err != nil {
		return false, fmt.Errorf("store the entry of %s again: %w", m.Subject, err)
	}
	return true, nil
}

// resealCursor stores the cursor again if it is sealed with an earlier key. While no timer is set, no other cursor is
// stored.
func (s *Stream) resealCursor(ctx context.Context) error {
	if len(s.Policy.Keys.IDs()) < 2 {
		return nil
	}
	m, err := s.API.Last(ctx, s.Name(), s.Policy.Names.Armed())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the cursor of the timers: %w", err)
	}
	in := m.Incoming(s.Name())
	c, ok := timer.ParseCursor(m.Data, m.Sequence)
	if !ok || s.Policy.Keys.UseOfMessage(in.Header) != message.LaterKey || !entry.ProvenCursor(s.Policy, in) {
		return nil
	}
	return s.KeepCursor(ctx, c)
}
