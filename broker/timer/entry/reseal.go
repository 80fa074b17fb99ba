package entry

import (
	"maps"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// This file rewrites entries of the timers' stream that are sealed with a key which may be taken away. A broker's seals
// last on entries that are pending: rounds of series, paused series, and schedules. All other sealed entries in the
// stream are removed in time.

// Resealed returns the header of an entry that replaces another one, under the key that seals now. Its content is the
// same: the due time, the round, the pause and the client's word. It is stored only if the other is still the last
// entry. It has a new generation, like a moved timer.
//
// Ok is false for an entry that a broker does not seal while it is pending, whose seal cannot be verified, or that
// would not be parsed to the same result: an overdue entry fires as it is.
func Resealed(p message.Policy, in message.Incoming, now time.Time) (h message.Header, ok bool) {
	if !ClaimsOurs(p, in) || !ours(p, in) {
		return nil, false
	}
	e := Parse(p, in)
	if !e.Stands() {
		return nil, false
	}
	if e.Recurs != nil {
		series, round := e.Round()
		h = e.RoundHeader(e.Generation, Next{
			Round: round, Wait: e.RetryAt, Table: e.Recurs.Table, First: series.First, Word: e.Word,
		})
	} else {
		h = maps.Clone(in.Header)
		maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-") })
		expect(h, e.Generation)
	}
	p.Keys.SealMessage(in.Subject, h, in.Data, now)
	again := Parse(p, message.Incoming{
		Stream: in.Stream, Sequence: in.Sequence + 1, At: now, Subject: in.Subject, Header: h, Data: in.Data,
	})
	return h, again.Problem == nil && again.Kind == e.Kind && again.Due.Equal(e.Due)
}
