package entry

import "delaybroker/broker/message"

// This file decides which entries count as the broker's own.

// ours reports whether an entry has our seal, as far as it was read. It counts however old the entry is: no older
// broker wrote such.
func ours(p message.Policy, in message.Incoming) bool { return p.Keys.Trusts(in, message.SealedAlways) }

// mayBeOurs reports whether an entry without a known seal of ours may have one all the same: its key is still to be
// read.
func mayBeOurs(p message.Policy, in message.Incoming) bool {
	return !in.KeysRead && p.Keys.UseOfMessage(in.Header) == message.OtherKey
}

// unproven is an entry that may be ours.
func unproven() Entry {
	return Entry{Kind: Unproven, Problem: message.Problemf(message.UnknownKey, "the key of its seal is not known yet")}
}

// forged is an entry that says that it is ours, and is not.
func forged(p message.Policy, in message.Incoming) Entry {
	set, _ := ParseSet(p, message.Incoming{Stream: in.Stream, Sequence: in.Sequence, At: in.At, Subject: in.Subject})
	return Entry{Pending: set, Generation: in.Sequence, Problem: replacing(message.Problemf(message.BadInternal,
		"it says that the broker wrote it, and the broker did not: leave Delay-Fired and Delay-Over out"), in.Sequence)}
}

// ClaimsOurs reports whether an entry says that a broker wrote it. Anybody may write so.
func ClaimsOurs(p message.Policy, in message.Incoming) bool {
	return in.Header[message.HeaderFired] != nil || in.Header[message.HeaderOver] != nil ||
		p.Names.Parse(in.Subject).Schedule()
}

// ProvenCursor reports whether an entry is a cursor of ours.
func ProvenCursor(p message.Policy, in message.Incoming) bool {
	return in.Subject == p.Names.Armed() && !message.Relayed(in.Header) && ours(p, in)
}
