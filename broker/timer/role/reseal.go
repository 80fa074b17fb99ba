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

// This file reseals the pending entries of the timers' stream that have an earlier key, so that the operator can remove
// this key. Without resealing, brokers would need the key until the last round, which may be years away, or until a
// pause ends. A sweep pass of the lane's owner reseals the entries. If instances have different first keys, the entries
// get the first key of the owner.

// seals has the results of a pass about the keys of entries.
type seals struct {
	resealed int             // number of resealed entries
	err      error           // the error that made the pass stop resealing; nil for none
	unopened int             // number of entries that claim to be a broker's, under an unknown key
	keys     map[string]bool // the ids of these keys, at most maxUnknownKeys
}

// Unopened returns the number of entries that claim to be a broker's under an unknown key, and the ids of such keys.
func (p Pass) Unopened() (entries int, keys map[string]bool) { return p.seals.unopened, p.seals.keys }

// Resealed returns the number of entries that the pass has resealed, and the error that made it stop; nil for none.
func (p Pass) Resealed() (entries int, err error) { return p.seals.resealed, p.seals.err }

// Outlives reports whether an entry is pending and sealed with an earlier key, and so must be resealed.
func (s *Stream) Outlives(e entry.Entry, in message.Incoming) bool {
	return e.Stands() && entry.ClaimsOurs(s.Policy, in) && s.Policy.Keys.UseOfMessage(in.Header) == message.LaterKey
}

// judge checks the key of an entry, and reseals the entry if necessary. Done reports whether the pass skips the entry:
// it was resealed, and comes again under its new sequence; or its key is unknown. Again reports whether a later pass
// must check the entry. An entry with an unknown key is not counted if it was stored later than the argument before:
// the lane may not have handled the entry yet.
func (p *seals) judge(ctx context.Context, s *Stream, m lane.Message, before time.Time) (done, again bool) {
	in := m.Incoming(s.Name())
	in.BodyLeft = true
	if !entry.ClaimsOurs(s.Policy, in) {
		return false, false
	}
	if s.Policy.Keys.UseOfMessage(in.Header) == message.OtherKey {
		if m.At.After(before) {
			return true, true // if the entry is forged, the lane removes it
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
	if p.err != nil { // an earlier reseal of this pass has failed
		return false, true
	}
	stored, err := s.reseal(ctx, m)
	if stored {
		p.resealed++
	}
	p.err = err
	return stored, err != nil
}

// maxUnknownKeys is the maximum number of key ids that a pass reports: any client may write some.
const maxUnknownKeys = 8

// reseal replaces an entry by one with the same content, sealed with the first key. Stored is false if the entry is not
// the last one any more, or need not be resealed.
func (s *Stream) reseal(ctx context.Context, m lane.Message) (stored bool, err error) {
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
		return false, nil // another entry replaced it, or is about to
	}
	if err := reply.Problem(); err != nil {
		return false, fmt.Errorf("store the entry of %s again: %w", m.Subject, err)
	}
	return true, nil
}

// resealCursor stores the cursor again if it is sealed with an earlier key. While no timer is set, the lane stores no
// other cursor.
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
