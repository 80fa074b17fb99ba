package layout

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Drift is a difference between a stream as we want it and as it is. The broker reports it and changes nothing:
// somebody may have had a reason.
type Drift struct {
	Stream string
	What   string
	Fatal  bool // the promises cannot be kept on such a stream
}

func (d Drift) String() string { return d.Stream + ": " + d.What }

// leastConsumers leaves room for those that were not removed, after crashes, until the server does so.
const leastConsumers = 8

// InactiveThreshold is how long the server keeps the consumer of a reader that is gone: one that crashed, or one whose
// lane is not read for a while because nothing in it is due; that one gets a new consumer when it asks again.
const InactiveThreshold = 5 * time.Minute

// isLane reports whether the stream is read in order.
func (s Spec) isLane() bool { return s.Kind == Intake || s.Kind == Level || s.Kind == Retry }

// Drift compares what matters to the promises: that what was accepted stays as it is, can be read, and can be removed
// when it has arrived. Settings that change none of this are the operator's: placement, compression, replicas, direct
// access, publishing in batches. Limits are compared with "at most": a stream that accepts less is a choice, one that
// accepts what cannot be moved on is a fault.
func (s Spec) Drift(has jetstream.StreamConfig) []Drift {
	var all []Drift
	report := func(fatal bool, format string, args ...any) {
		all = append(all, Drift{Stream: s.Stream, What: fmt.Sprintf(format, args...), Fatal: fatal})
	}
	if has.Retention != jetstream.LimitsPolicy {
		report(true, "retention is %s: messages would be removed by others; want limits", has.Retention)
	}
	if has.MaxAge != 0 {
		report(true, "max_age is %s: messages would be removed before they are due; want none", has.MaxAge)
	}
	if has.Discard != jetstream.DiscardNew && (has.MaxMsgs > 0 || has.MaxBytes > 0 || has.MaxMsgsPerSubject > 0) {
		report(true, "discard is old with a limit set: accepted messages would be removed; want new")
	} else if has.MaxMsgsPerSubject > 0 && !has.DiscardNewPerSubject && s.Kind != Owners {
		report(true, "max_msgs_per_subject is %d: accepted messages would be removed; want none", has.MaxMsgsPerSubject)
	}
	if s.Kind == Owners && has.MaxMsgsPerSubject != 1 {
		report(false, "max_msgs_per_subject is %d: what instances say each second piles up; want 1", has.MaxMsgsPerSubject)
	}
	if has.AllowRollup {
		report(true, "allow_rollup_hdrs is set: a header of one message would remove others; want it off")
	}
	if has.AllowMsgTTL {
		report(true, "allow_msg_ttl is set: a header would remove a message before it is due; want it off")
	}
	if has.DenyPurge {
		report(true, "deny_purge is set: what was moved on could not be removed; want it off")
	}
	if has.Sealed {
		report(true, "is sealed: nothing can be stored or removed")
	}
	if has.Mirror != nil {
		report(true, "is a mirror: nothing can be published to it")
	}
	if has.SubjectTransform != nil {
		report(true, "subject_transform is set: messages would be stored under other subjects than their publishers "+
			"chose; want none")
	}
	if has.AllowMsgSchedules {
		report(true, "allow_msg_schedules is set: by a header, the server itself would send a message on and remove it; "+
			"want it off")
	}
	if has.AllowMsgCounter {
		report(true, "allow_msg_counter is set: every message that is no counter would be refused; want it off")
	}
	if most := has.ConsumerLimits.InactiveThreshold; s.isLane() && most > 0 && most < InactiveThreshold {
		report(true, "consumer_limits.inactive_threshold is %s: no consumer could be made to read it; want none, or %s", most,
			InactiveThreshold)
	}
	if has.NoAck {
		report(true, "no_ack is set: publishers cannot know that a message is stored")
	}
	if has.Storage != jetstream.FileStorage {
		report(false, "storage is %s: pending messages do not survive a restart of the server", has.Storage)
	}
	if has.PersistMode == jetstream.AsyncPersistMode {
		report(false, "persist_mode is async: a crash of the server loses what it acknowledged last; want default")
	}
	if has.DenyDelete {
		report(false, "deny_delete is set: what has arrived behind a message that stays cannot be removed, and comes "+
			"again after a crash; want it off")
	}
	if len(has.Sources) > 0 {
		report(false, "has sources: what other streams hold is taken for messages of this one; want none")
	}
	if has.RePublish != nil {
		report(false, "republish is set: messages are shown on %s before they are due", has.RePublish.Destination)
	}
	if s.isLane() && has.MaxConsumers > 0 && has.MaxConsumers < leastConsumers {
		report(false, "max_consumers is %d: a broker that begins to read must make a consumer beside those of its "+
			"predecessors; want none, or %d", has.MaxConsumers, leastConsumers)
	}
	if s.MaxMsgSize > 0 && (has.MaxMsgSize <= 0 || has.MaxMsgSize > s.MaxMsgSize) {
		report(false, "max_msg_size is %d, more than %d: what is larger is accepted but cannot be moved", has.MaxMsgSize,
			s.MaxMsgSize)
	}
	if above(has.MaxMsgs, s.MaxMsgs) {
		report(false, "max_msgs is %d, want %d: more is accepted than was asked for", has.MaxMsgs, s.MaxMsgs)
	}
	if above(has.MaxBytes, s.MaxBytes) {
		report(false, "max_bytes is %d, want %d: more is accepted than was asked for", has.MaxBytes, s.MaxBytes)
	}
	if has.Duplicates < s.Duplicates {
		report(false, "duplicate_window is %s, less than %s", has.Duplicates, s.Duplicates)
	}
	if missing := minus(s.Subjects, has.Subjects); len(missing) > 0 {
		report(false, "does not listen on %d of its %d subjects, such as %s", len(missing), len(s.Subjects), missing[0])
	}
	return all
}

// above reports whether a limit is missing or higher than the one that is wanted, if any.
func above(has, want int64) bool { return want > 0 && (has <= 0 || has > want) }
