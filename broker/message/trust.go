package message

import (
	"strings"
	"time"
)

// The code in this file decides whether a record counts as the broker's. Records are messages between lanes, dead
// letters, entries that a broker wrote into the stream of timers, and notes. Notes are the list of pauses, the messages
// of package lease, the journal, and the answers of instances.

// Trust determines which records count without a seal. Without keys, all records count.
type Trust int

const (
	// TrustSealed requires a valid seal of every record. It is for kinds of records that all versions of the broker seal.
	TrustSealed Trust = iota
	// TrustLegacy requires a valid seal of each record that was stored at or after the start of sealing: see
	// [Keys.Replace]. It is for kinds of records that older brokers wrote without a seal.
	TrustLegacy
)

// A Record is an [Incoming] or a [Note].
type Record interface {
	doubt(r *ring, trust Trust) *Problem
}

// Note is a record that is not a message. [Keys.Seal] makes its seal. A note has no timestamp. So under TrustLegacy, a
// note without a seal counts until the local clock shows the start of sealing, or always if that start is zero. A note
// with a seal counts only if the seal is valid.
type Note struct {
	Subject string
	Body    []byte
	Seal    string // empty if the note has none
}

// Trusts reports whether a record counts. It cannot check the seal of a message with Incoming.HeadersOnly, and reports
// true.
func (k *Keys) Trusts(record Record, trust Trust) bool { return k.Doubt(record, trust) == nil }

// Doubt returns the reason why a record does not count, or nil if it counts. If the reason has the code UnknownKey, a
// broker may have begun to use the key after the last read of the keys.
func (k *Keys) Doubt(record Record, trust Trust) *Problem {
	r := k.load()
	if len(r.keys) == 0 {
		return nil
	}
	return record.doubt(r, trust)
}

// DoubtMessage returns the reason to doubt that a broker wrote a stored message, or nil.
func (k *Keys) DoubtMessage(in Incoming) *Problem { return k.Doubt(in, TrustLegacy) }

// requiresSeal reports whether a message that was stored at the given time must have a seal.
func (r *ring) requiresSeal(stored time.Time) bool {
	return len(r.keys) > 0 && !r.start.IsZero() && !stored.Before(r.start)
}

const onlyBrokers = "only the broker may publish on this subject, so revoke the permission of all other users"

func (in Incoming) doubt(r *ring, trust Trust) *Problem {
	if in.HeadersOnly || trust == TrustLegacy && !r.requiresSeal(in.At) {
		return nil
	}
	seals := in.Header[HeaderSeal] // in any other spelling, the header is not a seal
	if len(seals) != 1 {
		return Problemf(BadInternal,
			"the message has %d seals instead of one: another user wrote it, or had the server write it; %s",
			len(seals), onlyBrokers)
	}
	id := KeyID(seals[0])
	switch key := r.find(id); {
	case key == nil && !in.KeysCurrent:
		return Problemf(UnknownKey, "the key %s of the message's seal is not known yet", Excerpt(id))
	case key == nil:
		return unknownKey(id)
	case !key.messages.valid(seals[0], id, in.Subject, in.Header, in.Data):
		return wrongSeal()
	}
	return nil
}

func (n Note) doubt(r *ring, trust Trust) *Problem {
	if n.Seal == "" && trust == TrustLegacy && !r.requiresSeal(time.Now()) {
		return nil
	}
	id := KeyID(n.Seal)
	switch key := r.find(id); {
	case key == nil:
		return unknownKey(id)
	case !key.notes.valid(n.Seal, id, n.Subject, nil, n.Body):
		return wrongSeal()
	}
	return nil
}

func unknownKey(id string) *Problem {
	return Problemf(BadInternal,
		"the key %s of the seal is not a key of this broker: if it was, list its secret after the new one in "+
			"DELAY_SECRET until nothing is pending; if not, %s", Excerpt(id), onlyBrokers)
}

func wrongSeal() *Problem {
	return Problemf(BadInternal,
		"the seal is not valid for this message: another user changed or moved the message; %s", onlyBrokers)
}

// KeyID returns the id of the key that a seal names. The id is a fingerprint of the key, and is not secret.
func KeyID(seal string) string {
	id, _, _ := strings.Cut(seal, ".")
	return id
}

// IDs returns the ids of the keys. The first key makes the seals.
func (k *Keys) IDs() []string {
	var ids []string
	for _, key := range k.load().keys {
		ids = append(ids, key.id)
	}
	return ids
}

// KeyUse is the use of the key that a seal names. The seal need not be valid.
type KeyUse int

// The uses of a key.
const (
	NoKey    KeyUse = iota // there is no seal, or there are no keys
	FirstKey               // the key that makes the seals now
	LaterKey               // a key that only verifies seals
	OtherKey               // none of the keys
)

// UseOf returns the use of the key that a seal names.
func (k *Keys) UseOf(seal string) KeyUse {
	r := k.load()
	if seal == "" || len(r.keys) == 0 {
		return NoKey
	}
	switch r.find(KeyID(seal)) {
	case nil:
		return OtherKey
	case r.keys[0]:
		return FirstKey
	default:
		return LaterKey
	}
}

// UseOfMessage is like UseOf. It returns NoKey unless the message has exactly one seal.
func (k *Keys) UseOfMessage(h Header) KeyUse {
	if len(h[HeaderSeal]) != 1 {
		return NoKey
	}
	return k.UseOf(h[HeaderSeal][0])
}

// IsServerAnswer reports whether a message has a header of the server's answer to a request for a stored message. A
// client may name any subject for this answer, and NATS checks no permission for that subject.
func IsServerAnswer(h Header) bool {
	for _, name := range []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject"} {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}
