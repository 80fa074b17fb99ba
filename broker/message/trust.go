package message

import (
	"slices"
	"strings"
)

// The code in this file decides whether a record counts as the broker's. Records are messages between lanes, dead
// letters, entries that a broker wrote into the stream of timers, and notes. Notes are the list of pauses, the messages
// of package lease, the journal, and the answers of instances.

// A Record is an [Incoming] or a [Note].
type Record interface{ doubt(r *ring) *Problem }

// Note is a record that is not a message. [Keys.Seal] makes its seal.
type Note struct {
	Subject string
	Body    []byte
	Seal    string
}

// Trusts reports whether a record counts. It cannot check the seal of a message with Incoming.HeadersOnly, and reports
// true.
func (k *Keys) Trusts(record Record) bool { return k.Doubt(record) == nil }

// Doubt returns the reason why a record does not count, or nil if it counts. Without keys, all records count. If the
// reason has the code UnknownKey, a broker may have begun to use the key after the last read of the keys.
func (k *Keys) Doubt(record Record) *Problem {
	r := k.load()
	if len(r.keys) == 0 {
		return nil
	}
	return record.doubt(r)
}

const onlyBrokers = "only the broker may publish on this subject, so revoke the permission of all other users"

func (in Incoming) doubt(r *ring) *Problem {
	if in.HeadersOnly {
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

func (n Note) doubt(r *ring) *Problem {
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
	names := []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject"}
	return slices.ContainsFunc(names, func(name string) bool { return h[name] != nil })
}
