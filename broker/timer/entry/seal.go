package entry

import (
	"maps"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// sealed reports whether an entry has a broker's seal. Without the body or the keys, sealed cannot verify the seal, and
// returns true.
func sealed(p message.Policy, in message.Incoming) bool {
	return p.Keys.Trusts(in)
}

// maybeSealed reports whether an entry may have a broker's seal under a key that this process has not read yet.
func maybeSealed(p message.Policy, in message.Incoming) bool {
	return !in.KeysCurrent && p.Keys.UseOfMessage(in.Header) == message.OtherKey
}

// unprovenEntry returns the result of Parse for an entry that may be a broker's.
func unprovenEntry() Entry {
	return Entry{Kind: Unproven, Problem: message.Problemf(message.UnknownKey,
		"the key of the entry's seal is not known yet")}
}

// forgedEntry returns the result of Parse for an entry that falsely claims to be a broker's: an invalid set.
func forgedEntry(p message.Policy, in message.Incoming) Entry {
	set, _ := ParseSet(p, message.Incoming{Stream: in.Stream, Sequence: in.Sequence, At: in.At, Subject: in.Subject})
	return Entry{Pending: set, Generation: in.Sequence, Problem: addReplaced(message.Problemf(message.BadInternal,
		"the entry claims to be a broker's and has no valid seal: leave Delay-Fired and Delay-Over out"), in.Sequence)}
}

// ClaimsBroker reports whether an entry claims that a broker wrote it. Any client may write such a claim.
func ClaimsBroker(p message.Policy, in message.Incoming) bool {
	return in.Header[message.HeaderFired] != nil || in.Header[message.HeaderOver] != nil ||
		p.Names.Parse(in.Subject).IsSchedule()
}

// IsSealedCursor reports whether a broker wrote an entry as the cursor.
func IsSealedCursor(p message.Policy, in message.Incoming) bool {
	return in.Subject == p.Names.TimersCursor() && !message.IsServerAnswer(in.Header) && sealed(p, in)
}

// Reseal returns the header of an entry with the same content, sealed with the first of p.Keys, which makes all new
// seals. Only rounds of series, paused series and schedules are resealed: they may stay for years. The stream stores
// the new entry, with a new generation, only if the old entry is still the last one.
//
// ok is false if the entry is neither pending nor paused, if it needs no seal, if it has no valid seal, or if the new
// entry would have another meaning. For example, the due time of a schedule may have passed; then the entry stays, and
// fires.
func Reseal(p message.Policy, in message.Incoming, now time.Time) (h message.Header, ok bool) {
	if !ClaimsBroker(p, in) || !sealed(p, in) {
		return nil, false
	}
	e := Parse(p, in)
	if !e.PendingOrPaused() {
		return nil, false
	}
	if e.Series != nil {
		series, round := e.Round()
		h = e.RoundHeader(e.Generation, Next{
			Round: round, Wait: e.RetryAt, Table: e.Series.Table, First: series.First, Token: e.Token,
		})
	} else {
		h = maps.Clone(in.Header)
		maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-") })
		expect(h, e.Generation)
	}
	p.Keys.SealMessage(in.Subject, h, in.Data)
	resealed := Parse(p, message.Incoming{
		Stream: in.Stream, Sequence: in.Sequence + 1, At: now, Subject: in.Subject, Header: h, Data: in.Data,
	})
	return h, resealed.Problem == nil && resealed.Kind == e.Kind && resealed.Due.Equal(e.Due)
}
