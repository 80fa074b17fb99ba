package streams

import (
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels"
)

// This file handles the stream of the journal. The server removes the journal's records by age and size, and no
// guarantee depends on them. So no difference in the configuration of this stream is fatal.

// limitJournal applies the age and size limits of the records. A lower limit removes the oldest records.
func limitJournal(has *jetstream.StreamConfig, want Spec) (changed bool) {
	if want.MaxAge > 0 && has.MaxAge != want.MaxAge {
		has.MaxAge, changed = want.MaxAge, true
		if has.Duplicates > want.MaxAge { // the server refuses a window that is longer than max_age
			has.Duplicates = want.MaxAge
		}
	}
	if want.MaxBytes > 0 && has.MaxBytes != want.MaxBytes {
		has.MaxBytes, changed = want.MaxBytes, true
	}
	return changed
}

// checkJournal reports settings with which records may be missing, or the journal may use the storage of the lanes.
func (s Spec) checkJournal(d *drifts, has jetstream.StreamConfig) {
	d.check(has.MaxAge != s.MaxAge, warning,
		"max_age is %s, want %s: records are kept for the actual time", maxAgeText(has), levels.FormatDuration(s.MaxAge))
	d.check(exceeds(has.MaxBytes, s.MaxBytes), warning,
		"max_bytes is %d, want %d: the journal may take the room of the lanes", has.MaxBytes, s.MaxBytes)
	d.check(has.Discard != jetstream.DiscardOld && (has.MaxMsgs > 0 || has.MaxBytes > 0), warning,
		"discard is new with a limit set: a full journal accepts no records; want old")
	d.check(has.Retention != jetstream.LimitsPolicy, warning,
		"retention is %s: readers would remove records; want limits", has.Retention)
	d.check(has.MaxMsgs > 0 || has.MaxMsgsPerSubject > 0, warning,
		"max_msgs is %d, per subject %d: records are removed before their time; want none",
		has.MaxMsgs, has.MaxMsgsPerSubject)
	d.check(has.MaxMsgSize > 0, warning,
		"max_msg_size is %d: larger batches of records are refused; want none", has.MaxMsgSize)
	d.check(has.Storage != jetstream.FileStorage, warning,
		"storage is %s: records do not survive a restart of the server", has.Storage)
	d.check(has.AllowRollup || has.AllowMsgTTL || has.AllowMsgSchedules || has.AllowMsgCounter, warning,
		"headers that remove or publish messages are allowed; want them off")
	d.check(has.Sealed || has.Mirror != nil || has.SubjectTransform != nil || has.NoAck, warning,
		"is sealed, a mirror, transforms subjects, or acknowledges nothing: no record can be added")
	if has.RePublish != nil {
		d.check(true, warning, "republish is set: the targets of all deliveries are published on %s",
			has.RePublish.Destination)
	}
	if missing := Subtract(s.Subjects, has.Subjects); len(missing) > 0 {
		d.check(true, warning, "does not listen on %s: no record can be added", missing[0])
	}
}

// UnwantedJournal reports a journal that exists although it is not wanted. The broker does not change its stream.
func UnwantedJournal(want, found []Spec) []Drift {
	var d drifts
	for _, s := range found {
		if _, wanted := SpecOf(want, s.Stream); s.Kind != Journal || wanted {
			continue
		}
		d.stream = s.Stream
		ends := "remains until an operator deletes it"
		if s.MaxAge > 0 {
			ends = "becomes empty within " + levels.FormatDuration(s.MaxAge)
		}
		d.check(true, warning, "DELAY_JOURNAL is off: the earlier journal is left unchanged, and %s", ends)
	}
	return d.all
}

func maxAgeText(has jetstream.StreamConfig) string {
	if has.MaxAge == 0 {
		return "none"
	}
	return levels.FormatDuration(has.MaxAge)
}
