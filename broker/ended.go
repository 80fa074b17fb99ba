package broker

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/journal"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

// This file says how each message ended: to the journal, and to whoever else wants to know. No step of a message waits
// for either.

// Ended is how a message ended.
type Ended = config.Ended

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
		w.shared.ended(Ended{
			Ending: message.Ending(r), Accepted: as.Accepted, Header: as.User, Size: len(f.Data), Hops: as.Hop,
			Lane: w.lane.Stream, Stored: f.At, First: as.FirstFailure, Last: as.LastFailure,
		})
	}
}
