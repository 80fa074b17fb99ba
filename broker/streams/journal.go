package streams

import (
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels"
)

// This file handles the stream of the journal, which differs from the others: the server removes its records by age and
// size, and no promise depends on it. So no difference is fatal.

// limitJournal applies the age and size limits of the records. A lower limit removes the oldest records.
func limitJournal(has *jetstream.StreamConfig, want Spec) (changed bool) {
	if want.MaxAge > 0 && has.MaxAge != want.MaxAge {
		has.MaxAge, changed = want.MaxAge, true
		if has.Duplicates > want.MaxAge { // the server would refuse it
			has.Duplicates = want.MaxAge
		}
	}
	if want.MaxBytes > 0 && has.MaxBytes != want.MaxBytes {
		has.MaxBytes, changed = want.MaxBytes, true
	}
	return changed
}

// checkJournal finds the settings with which records may be missing, or the journal may take the lanes' room.
func (s Spec) checkJournal(d *drifts, has jetstream.StreamConfig) {
	if has.MaxAge != s.MaxAge {
		d.report(false, "max_age is %s, want %s: so long records are kept", age(has), levels.FormatDuration(s.MaxAge))
	}
	if above(has.MaxBytes, s.MaxBytes) {
		d.report(false, "max_bytes is %d, want %d: the journal may take the room of the lanes", has.MaxBytes, s.MaxBytes)
	}
	if has.Discard != jetstream.DiscardOld && (has.MaxMsgs > 0 || has.MaxBytes > 0) {
		d.report(false, "discard is new with a limit set: when it is full, it takes no records; want old")
	}
	if has.Retention != jetstream.LimitsPolicy {
		d.report(false, "retention is %s: records would be removed by those who read them; want limits", has.Retention)
	}
	if has.MaxMsgs > 0 || has.MaxMsgsPerSubject > 0 {
		d.report(false, "max_msgs is %d, per subject %d: records are removed before their time; want none",
			has.MaxMsgs, has.MaxMsgsPerSubject)
	}
	if has.MaxMsgSize > 0 {
		d.report(false, "max_msg_size is %d: larger batches of records are refused; want none", has.MaxMsgSize)
	}
	if has.Storage != jetstream.FileStorage {
		d.report(false, "storage is %s: records do not survive a restart of the server", has.Storage)
	}
	if has.AllowRollup || has.AllowMsgTTL || has.AllowMsgSchedules || has.AllowMsgCounter {
		d.report(false, "headers that remove or send on messages are allowed; want them off")
	}
	if has.Sealed || has.Mirror != nil || has.SubjectTransform != nil || has.NoAck {
		d.report(false, "it is sealed, a mirror, transforms subjects, or acknowledges nothing: no record can be added")
	}
	if has.RePublish != nil {
		d.report(false, "republish is set: all targets are shown on %s", has.RePublish.Destination)
	}
	if missing := minus(s.Subjects, has.Subjects); len(missing) > 0 {
		d.report(false, "does not listen on %s: no record can be added", missing[0])
	}
}

// Left reports a journal that exists although it is not wanted. The broker does not change it.
func Left(want, found []Spec) []Drift {
	var d drifts
	for _, s := range found {
		wanted := slices.ContainsFunc(want, func(w Spec) bool { return w.Stream == s.Stream })
		if s.Kind != Journal || wanted {
			continue
		}
		d.stream = s.Stream
		ends := "stays until somebody deletes it"
		if s.MaxAge > 0 {
			ends = "empties itself within " + levels.FormatDuration(s.MaxAge)
		}
		d.report(false, "DELAY_JOURNAL is off: the journal of before is left as it is, and %s", ends)
	}
	return d.all
}

func age(has jetstream.StreamConfig) string {
	if has.MaxAge == 0 {
		return "none"
	}
	return levels.FormatDuration(has.MaxAge)
}
