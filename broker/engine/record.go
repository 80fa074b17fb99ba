package engine

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/journal"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

// This file passes a record of each delivery and dead letter to the journal, and to the function config.Config.Ended.
// The loop calls Ended, so Ended must return immediately. The loop does not wait for the journal.

// recordsEnds reports whether the journal or Ended gets records.
func (w *worker) recordsEnds() bool { return w.engine.Journal != nil || w.engine.Settings.Ended != nil }

// recordDelivered records the delivery of a message. At is the time of the delivery by the leader's clock.
func (w *worker) recordDelivered(f *flight, at leader.Time, lateness time.Duration) {
	if !w.recordsEnds() {
		return
	}
	r := &f.request
	w.record(f, r, journal.Record{
		ID: r.ID, Target: r.Target, At: at.Stamp(), Due: r.Due, Lateness: lateness, Refusals: r.Attempts,
		Reason: r.LastError, Series: r.Origin().Series, Round: r.Origin().Round,
	})
}

// recordDead records that the dead letter of a message is stored.
func (w *worker) recordDead(f *flight, now leader.Time) {
	if !w.recordsEnds() {
		return
	}
	request, problem := f.sent.request, f.sent.problem
	r := journal.Record{
		ID: request.ID, Target: request.Target, At: now.Stamp(), Refusals: request.Attempts,
		Code: problem.Code, Reason: problem.Sentence,
		Series: request.Origin().Series, Round: request.Origin().Round,
	}
	if (message.Letter{Request: *request, Code: problem.Code}).DueKnown() {
		r.Due, r.Lateness = request.Due, max(0, now.Sub(leader.At(request.Due)))
	}
	w.record(f, request, r)
}

func (w *worker) record(f *flight, request *message.Request, r journal.Record) {
	if w.engine.Journal != nil {
		w.engine.Journal.Add(r)
	}
	if w.engine.Settings.Ended != nil {
		w.engine.Settings.Ended(config.Ended{
			Ending: message.Ending(r), Accepted: request.Accepted, Header: request.User, Size: len(f.Data), Hops: request.Hop,
			Lane: w.lane.Stream, Stored: f.At, FirstRefusal: request.FirstFailure, LastRefusal: request.LastFailure,
		})
	}
}
