package entry

import (
	"maps"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// This file writes entries of the timers' stream again that are sealed with a key which may be taken away. A broker
// seals what is pending for as long as it is pending: rounds of series, paused series, and schedules. All else that it
// seals there goes by itself.

// Resealed is the header of an entry that takes the place of another one, under the key that seals now. It says the
// same: the due time, the round, the pause and the client's word are those of the entry before. It is stored only if
// that one is still the last. The entry has a generation of its own, as one that was moved.
//
// Ok is false for an entry that a broker does not seal while it is pending, that nobody can prove, or that would not be
// read as it is now: what is overdue fires as it is.
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
