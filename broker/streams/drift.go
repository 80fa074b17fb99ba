package streams

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Drift is a difference between the wanted and the actual configuration of a stream. The broker reports it and does not
// change the stream: an operator may have had a reason.
type Drift struct {
	Stream string
	What   string
	Fatal  bool // the broker cannot keep its promises with such a stream
	Unsafe bool // the stream is less durable than the others
	Mend   Mend
}

// Mend is the way to remove a difference.
type Mend int

// The ways to remove a difference.
const (
	ByEdit      Mend = iota // an operator edits the stream
	ByProvision             // provisioning removes it
	ByAnew                  // the server refuses such an update: the stream must be created again
)

func (d Drift) String() string { return d.Stream + ": " + d.What }

// minConsumers leaves room for the consumers of crashed readers, until the server removes them.
const minConsumers = 8

// InactiveThreshold is how long the server keeps the consumer of a reader that sends no requests. Either the reader has
// crashed, or it does not read its lane for a while because no message in it is due. In the latter case the reader
// creates a new consumer for its next request.
const InactiveThreshold = 5 * time.Minute

// Drift compares the settings that the promises need: accepted messages stay unchanged, can be read, and can be removed
// after delivery. Other settings are the operator's: placement, compression, replicas, direct access, publishing in
// batches. Limits are compared with "at most". A stream that accepts less is a choice. A stream that accepts messages
// that cannot be moved on has a fault.
func (s Spec) Drift(has jetstream.StreamConfig) []Drift {
	d := drifts{stream: s.Stream}
	if s.Kind == Journal {
		s.checkJournal(&d, has)
		return d.all
	}
	s.checkPromises(&d, has)
	s.checkRisks(&d, has)
	return d.all
}

// drifts are the differences found so far.
type drifts struct {
	stream string
	all    []Drift
}

func (d *drifts) report(fatal bool, format string, args ...any) *Drift {
	d.all = append(d.all, Drift{Stream: d.stream, What: fmt.Sprintf(format, args...), Fatal: fatal})
	return &d.all[len(d.all)-1]
}

// reportLasting reports a setting that no update of a stream can revert (nats-server, server/stream.go,
// configUpdateCheck).
func (d *drifts) reportLasting(fatal bool, format string, args ...any) *Drift {
	found := d.report(fatal, format, args...)
	found.Mend = ByAnew
	return found
}

// checkPromises finds the settings with which the broker cannot keep its promises.
func (s Spec) checkPromises(d *drifts, has jetstream.StreamConfig) {
	if has.Retention != jetstream.LimitsPolicy {
		d.reportLasting(true, "retention is %s: messages would be removed by others; want limits", has.Retention)
	}
	if has.MaxAge != 0 {
		d.report(true, "max_age is %s: messages would be removed before they are due; want none", has.MaxAge)
	}
	if has.Discard != jetstream.DiscardNew && (has.MaxMsgs > 0 || has.MaxBytes > 0 || has.MaxMsgsPerSubject > 0) {
		d.report(true, "discard is old with a limit set: accepted messages would be removed; want new")
	} else if has.MaxMsgsPerSubject > 0 && !has.DiscardNewPerSubject && s.Kind != Owners {
		d.report(true, "max_msgs_per_subject is %d: accepted messages would be removed; want none", has.MaxMsgsPerSubject)
	}
	if s.Kind == Timers && has.MaxMsgsPerSubject > 0 && has.DiscardNewPerSubject {
		d.report(true, "max_msgs_per_subject is %d: no timer could be replaced, cancelled or fired; want none",
			has.MaxMsgsPerSubject)
	}
	if s.Kind == Timers && has.DenyDelete {
		d.report(true, "deny_delete is set: no timer that is over could be removed; want it off")
	}
	if s.Kind == Timers && has.AllowAtomicPublish {
		d.report(false, "allow_atomic is set: a batch may hold several verdicts; want it off")
	}
	if s.Kind == Owners && has.MaxMsgsPerSubject != 1 {
		d.report(false, "max_msgs_per_subject is %d: what instances say each second piles up; want 1", has.MaxMsgsPerSubject)
	}
	if has.AllowRollup {
		d.report(true, "allow_rollup_hdrs is set: a header of one message would remove others; want it off")
	}
	if has.AllowMsgTTL {
		d.reportLasting(true, "allow_msg_ttl is set: a header would remove a message before it is due; want it off")
	}
	if has.DenyPurge {
		d.reportLasting(true, "deny_purge is set: what was moved on could not be removed; want it off")
	}
	if has.Sealed {
		d.reportLasting(true, "is sealed: nothing can be stored or removed")
	}
	if has.Mirror != nil {
		d.report(true, "is a mirror: nothing can be published to it")
	}
	if has.SubjectTransform != nil {
		d.report(true, "subject_transform is set: messages would be stored under other subjects than their publishers "+
			"chose; want none")
	}
	if has.AllowMsgSchedules {
		d.reportLasting(true, "allow_msg_schedules is set: by a header, the server itself would send a message on and "+
			"remove it; want it off")
	}
	if has.AllowMsgCounter {
		d.reportLasting(true, "allow_msg_counter is set: every message that is no counter would be refused; want it off")
	}
	if most := has.ConsumerLimits.InactiveThreshold; s.Kind.IsLane() && most > 0 && most < InactiveThreshold {
		d.report(true, "consumer_limits.inactive_threshold is %s: no consumer could be made to read it; want none, or %s",
			most, InactiveThreshold)
	}
	if has.NoAck {
		d.report(true, "no_ack is set: publishers cannot know that a message is stored")
	}
}

// checkRisks finds the settings that risk a loss in a crash, or that accept messages that cannot be moved on.
func (s Spec) checkRisks(d *drifts, has jetstream.StreamConfig) {
	if has.Storage != jetstream.FileStorage {
		d.reportLasting(false, "storage is %s: pending messages do not survive a restart of the server", has.Storage).
			Unsafe = true
	}
	if has.PersistMode == jetstream.AsyncPersistMode {
		d.reportLasting(false, "persist_mode is async: a crash of the server loses what it acknowledged last; want default").
			Unsafe = true
	}
	if has.DenyDelete {
		d.reportLasting(false, "deny_delete is set: what has arrived behind a message that stays cannot be removed, and "+
			"comes again after a crash; want it off")
	}
	if len(has.Sources) > 0 {
		d.report(false, "has sources: what other streams hold is taken for messages of this one; want none")
	}
	if has.RePublish != nil {
		d.report(false, "republish is set: messages are shown on %s before they are due", has.RePublish.Destination)
	}
	if s.Kind.IsLane() && has.MaxConsumers > 0 && has.MaxConsumers < minConsumers {
		d.report(false, "max_consumers is %d: a broker that begins to read must make a consumer beside those of its "+
			"predecessors; want none, or %d", has.MaxConsumers, minConsumers)
	}
	if s.MaxMsgSize > 0 && (has.MaxMsgSize <= 0 || has.MaxMsgSize > s.MaxMsgSize) {
		d.report(false, "max_msg_size is %d, more than %d: what is larger is accepted but cannot be moved", has.MaxMsgSize,
			s.MaxMsgSize)
	}
	if above(has.MaxMsgs, s.MaxMsgs) {
		d.report(false, "max_msgs is %d, want %d: more is accepted than was asked for", has.MaxMsgs, s.MaxMsgs)
	}
	if above(has.MaxBytes, s.MaxBytes) {
		d.report(false, "max_bytes is %d, want %d: more is accepted than was asked for", has.MaxBytes, s.MaxBytes)
	}
	if has.Duplicates < s.Duplicates {
		d.report(false, "duplicate_window is %s, less than %s", has.Duplicates, s.Duplicates)
	}
	if missing := minus(s.Subjects, has.Subjects); len(missing) > 0 {
		d.report(false, "does not listen on %d of its %d subjects, such as %s", len(missing), len(s.Subjects), missing[0]).
			Mend = ByProvision
	}
}

// above reports whether a limit is missing, or higher than the wanted one, if there is one.
func above(has, want int64) bool { return want > 0 && (has <= 0 || has > want) }
