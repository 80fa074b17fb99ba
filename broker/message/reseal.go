package message

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// This file writes entries of the timers' stream again that are sealed with a key which may be taken away. A broker
// seals what is pending for as long as it is pending: rounds of series, paused series, and schedules. All else that it
// seals there goes by itself.

// ClaimsOurs reports whether an entry says that a broker wrote it. Anybody may write so.
func (p Policy) ClaimsOurs(in Incoming) bool {
	return in.Header[HeaderFired] != nil || in.Header[HeaderOver] != nil || p.Names.Parse(in.Subject).Schedule()
}

// Resealed is the header of an entry that takes the place of another one, under the key that seals now. It says the
// same: the due time, the round, the pause and the client's word are those of the entry before. It is stored only if
// that one is still the last. The entry has a generation of its own, as one that was moved.
//
// Ok is false for an entry that a broker does not seal while it is pending, that nobody can prove, or that would not be
// read as it is now: what is overdue fires as it is.
func (p Policy) Resealed(in Incoming, now time.Time) (h Header, ok bool) {
	if !p.ClaimsOurs(in) || !p.Keys.Trusts(in, SealedAlways) {
		return nil, false
	}
	e := p.ParseTimer(in)
	if e.Problem != nil || e.Kind != SetEntry && e.Kind != PausedEntry {
		return nil, false
	}
	r := e.Request
	if r.Recurs != nil {
		series, round := r.RoundOf()
		h = r.RoundHeader(e.Generation, Next{
			Round: round, Wait: r.RetryAt, Table: r.Recurs.Table, First: series.First, Word: e.Word,
		})
	} else {
		h = maps.Clone(in.Header)
		maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-") })
		set(h, HeaderExpected, strconv.FormatUint(e.Generation, 10))
	}
	p.Keys.SealMessage(in.Subject, h, in.Data, now)
	again := p.ParseTimer(Incoming{
		Stream: in.Stream, Sequence: in.Sequence + 1, At: now, Subject: in.Subject, Header: h, Data: in.Data,
	})
	return h, again.Problem == nil && again.Kind == e.Kind && again.Request.Due.Equal(r.Due)
}
