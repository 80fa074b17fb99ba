package engine

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/journal"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

// This file records how each message ended: in the journal, and for config.Config.Ended. No step of a message waits for
// either.

// recordDelivered notes that the target has a message.
func (w *worker) recordDelivered(f *flight, at leader.Time, late time.Duration) {
	if w.shared.journal == nil && w.shared.ended == nil {
		return
	}
	w.record(f, &f.request, deliveredRecord(f, at, late))
}

// recordDead notes that the dead letter of a message is stored.
func (w *worker) recordDead(f *flight, m moment) {
	if w.shared.journal == nil && w.shared.ended == nil {
		return
	}
	w.record(f, f.sent.as, deadRecord(f, m.now))
}

func (w *worker) record(f *flight, as *message.Request, r journal.Record) {
	if w.shared.journal != nil {
		w.shared.journal.Add(r)
	}
	if w.shared.ended != nil {
		w.shared.ended(config.Ended{
			Ending: message.Ending(r), Accepted: as.Accepted, Header: as.User, Size: len(f.Data), Hops: as.Hop,
			Lane: w.lane.Stream, Stored: f.At, First: as.FirstFailure, Last: as.LastFailure,
		})
	}
}

// deliveredRecord is the record of a message that its target has.
func deliveredRecord(f *flight, at leader.Time, late time.Duration) journal.Record {
	r := &f.request
	return journal.Record{
		ID: r.ID, Target: r.Target, At: at.Stamp(), Due: r.Due, Late: late, Refused: r.Attempts, Reason: r.LastError,
		Series: r.Origin().Series, Round: r.Origin().Round,
	}
}

// deadRecord is the record of a message whose dead letter is stored.
func deadRecord(f *flight, now leader.Time) journal.Record {
	as, why := f.sent.as, f.sent.why
	r := journal.Record{
		ID: as.ID, Target: as.Target, At: now.Stamp(), Refused: as.Attempts, Code: why.Code, Reason: why.Sentence,
		Series: as.Origin().Series, Round: as.Origin().Round,
	}
	if (message.Letter{Request: *as, Code: why.Code}).Understood() {
		r.Due, r.Late = as.Due, max(0, now.Sub(leader.At(as.Due)))
	}
	return r
}
