package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// Brokers may have several keys for seals. They seal with the first key, and only verify seals with the others
// (message.LaterKey). This file seals pending and paused entries with the first key if one of the others has sealed
// them. Otherwise, brokers would need that key until the entry's timer fires or is resumed, which may take years. If
// instances have different first keys, the entries get the first key of the active instance.

// seals holds what a pass has found about the keys with which the entries are sealed.
type seals struct {
	resealed int             // number of resealed entries
	err      error           // the first error of a reseal, after which the pass reseals nothing; nil for none
	unopened int             // number of entries whose seal names an unknown key
	keys     map[string]bool // the ids of these keys, at most maxUnknownKeys
}

// Unopened returns the number of entries whose seal names an unknown key, and the ids of such keys.
func (p Pass) Unopened() (entries int, keys map[string]bool) { return p.seals.unopened, p.seals.keys }

// Resealed returns the number of entries that the pass has resealed, and the error that ended the resealing; nil for
// none.
func (p Pass) Resealed() (entries int, err error) { return p.seals.resealed, p.seals.err }

// mustReseal reports whether an entry is pending or paused, and sealed with a key that only verifies seals.
func (s *Stream) mustReseal(e entry.Entry, in message.Incoming) bool {
	return e.PendingOrPaused() && entry.ClaimsBroker(s.Policy, in) &&
		s.Policy.Keys.UseOfMessage(in.Header) == message.LaterKey
}

// checkKey checks the key with which an entry is sealed, and reseals the entry if necessary. Done reports whether the
// pass skips the entry: either the pass will find the resealed entry under its new sequence, or the key is unknown.
// Revisit reports whether a later pass must check the entry. An entry sealed with an unknown key is not counted if it
// was stored later than the cutoff: the lane may not have handled the entry yet.
func (p *seals) checkKey(
	ctx context.Context, s *Stream, in message.Incoming, e entry.Entry, cutoff time.Time,
) (done, revisit bool) {
	if !entry.ClaimsBroker(s.Policy, in) {
		return false, false
	}
	if s.Policy.Keys.UseOfMessage(in.Header) == message.OtherKey {
		if in.At.After(cutoff) {
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
	if !s.mustReseal(e, in) {
		return false, false
	}
	if p.err != nil { // an earlier reseal of this pass has failed
		return false, true
	}
	stored, err := s.reseal(ctx, in.Subject, in.Sequence)
	if stored {
		p.resealed++
	}
	p.err = err
	return stored, err != nil
}

// maxUnknownKeys is the maximum number of key ids that a pass reports: any client can make up ids.
const maxUnknownKeys = 8

// reseal replaces an entry by an entry with the same content, sealed with the first key. Stored is false, without an
// error, if the given entry was removed or replaced, if another publish is replacing it, or if entry.Reseal refuses it.
func (s *Stream) reseal(ctx context.Context, subject string, sequence uint64) (stored bool, err error) {
	last, err := s.API.Last(ctx, s.Name(), subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Sequence != sequence {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the last entry of %s: %w", subject, err)
	}
	header, ok := entry.Reseal(s.Policy, last.Incoming(s.Name()), time.Now())
	if !ok {
		return false, nil
	}
	reply := s.Publish(ctx, &nats.Msg{Subject: subject, Header: nats.Header(header), Data: last.Data})
	if outcome := reply.Outcome(); outcome == jsapi.Conflict || outcome == jsapi.Undecided {
		return false, nil
	}
	if err := reply.Failure(); err != nil {
		return false, fmt.Errorf("store the entry of %s again: %w", subject, err)
	}
	return true, nil
}

// resealCursor seals the cursor with the first key if one of the others has sealed it. The lane would store a new
// cursor only after the next new entry.
func (s *Stream) resealCursor(ctx context.Context) error {
	if len(s.Policy.Keys.IDs()) < 2 {
		return nil
	}
	c, in, err := s.readCursor(ctx)
	switch {
	case errors.Is(err, errCursor), err == nil && s.Policy.Keys.UseOfMessage(in.Header) != message.LaterKey:
		return nil
	case err != nil:
		return err
	}
	return s.StoreCursor(ctx, c)
}
