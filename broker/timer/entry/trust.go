package entry

import "delaybroker/broker/message"

// This file decides which entries count as the broker's own.

// ours reports whether an entry has our seal, by the part of it that was read. The seal is required however old the
// entry is: no older broker wrote such entries unsealed.
func ours(p message.Policy, in message.Incoming) bool { return p.Keys.Trusts(in, message.SealedAlways) }

// mayBeOurs reports whether an entry may have our seal, under a key that is still to be read.
func mayBeOurs(p message.Policy, in message.Incoming) bool {
	return !in.KeysRead && p.Keys.UseOfMessage(in.Header) == message.OtherKey
}

// unproven returns an entry that may be ours.
func unproven() Entry {
	return Entry{Kind: Unproven, Problem: message.Problemf(message.UnknownKey, "the key of its seal is not known yet")}
}

// forged returns an entry that claims to be ours, and is not.
func forged(p message.Policy, in message.Incoming) Entry {
	set, _ := ParseSet(p, message.Incoming{Stream: in.Stream, Sequence: in.Sequence, At: in.At, Subject: in.Subject})
	return Entry{Pending: set, Generation: in.Sequence, Problem: replacing(message.Problemf(message.BadInternal,
		"it says that the broker wrote it, and the broker did not: leave Delay-Fired and Delay-Over out"), in.Sequence)}
}

// ClaimsOurs reports whether an entry claims that a broker wrote it. Any client may write such a claim.
func ClaimsOurs(p message.Policy, in message.Incoming) bool {
	return in.Header[message.HeaderFired] != nil || in.Header[message.HeaderOver] != nil ||
		p.Names.Parse(in.Subject).Schedule()
}

// ProvenCursor reports whether an entry is a cursor of ours.
func ProvenCursor(p message.Policy, in message.Incoming) bool {
	return in.Subject == p.Names.Armed() && !message.Relayed(in.Header) && ours(p, in)
}
