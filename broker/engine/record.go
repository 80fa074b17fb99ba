package engine

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/journal"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

// This file records the end of each message in the journal, and passes it to config.Config.Ended. The loop calls
// Ended, which must return immediately, and waits for nothing else.

// watched reports whether the ends of messages are recorded.
func (w *worker) watched() bool { return w.engine.Journal != nil || w.engine.Settings.Ended != nil }

// recordDelivered records that the target has a message, by the leader's clock.
func (w *worker) recordDelivered(f *flight, at leader.Time, late time.Duration) {
	if !w.watched() {
		return
	}
	r := &f.request
	w.record(f, r, journal.Record{
		ID: r.ID, Target: r.Target, At: at.Stamp(), Due: r.Due, Late: late, Refused: r.Attempts, Reason: r.LastError,
		Series: r.Origin().Series, Round: r.Origin().Round,
	})
}

// recordDead records that the dead letter of a message is stored.
func (w *worker) recordDead(f *flight, now leader.Time) {
	if !w.watched() {
		return
	}
	as, why := f.sent.as, f.sent.why
	r := journal.Record{
		ID: as.ID, Target: as.Target, At: now.Stamp(), Refused: as.Attempts, Code: why.Code, Reason: why.Sentence,
		Series: as.Origin().Series, Round: as.Origin().Round,
	}
	if (message.Letter{Request: *as, Code: why.Code}).DueKnown() {
		r.Due, r.Late = as.Due, max(0, now.Sub(leader.At(as.Due)))
	}
	w.record(f, as, r)
}

func (w *worker) record(f *flight, as *message.Request, r journal.Record) {
	if w.engine.Journal != nil {
		w.engine.Journal.Add(r)
	}
	if w.engine.Settings.Ended != nil {
		w.engine.Settings.Ended(config.Ended{
			Ending: message.Ending(r), Accepted: as.Accepted, Header: as.User, Size: len(f.Data), Hops: as.Hop,
			Lane: w.lane.Stream, Stored: f.At, First: as.FirstFailure, Last: as.LastFailure,
		})
	}
}
