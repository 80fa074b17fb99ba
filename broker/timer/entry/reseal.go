package entry

import (
	"maps"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// Reseal returns the header of an entry with the same content, sealed with the first key. Only pending entries are
// resealed: rounds of series, paused series, and schedules. All other sealed entries are removed soon. The stream
// stores the new entry only if the old entry is still the last one. The new entry has a new generation.
//
// ok is false if the entry is not pending, if it needs no seal, if its seal cannot be verified, or if the new entry
// would have another meaning. For example, the due time of a schedule may have passed; then the entry stays, and fires.
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
	p.Keys.SealMessage(in.Subject, h, in.Data, now)
	resealed := Parse(p, message.Incoming{
		Stream: in.Stream, Sequence: in.Sequence + 1, At: now, Subject: in.Subject, Header: h, Data: in.Data,
	})
	return h, resealed.Problem == nil && resealed.Kind == e.Kind && resealed.Due.Equal(e.Due)
}
