package streams

import (
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels"
)

// This file handles the stream of the journal. The server removes the journal's records by age and size, and no promise
// depends on them. So no difference in the configuration of this stream is fatal.

// checkJournal reports settings with which records may be missing or become public, or the journal may use the storage
// of the lanes.
func (s Spec) checkJournal(d *drifts, cfg jetstream.StreamConfig) {
	d.check(cfg.MaxAge != s.MaxAge, warning,
		"max_age is %s, want %s: records are kept for max_age", maxAgeText(cfg), levels.FormatDuration(s.MaxAge))
	d.check(exceeds(cfg.MaxBytes, s.MaxBytes), warning,
		"max_bytes is %d, want %d: the journal may take the room of the lanes", cfg.MaxBytes, s.MaxBytes)
	d.check(cfg.Discard != jetstream.DiscardOld && (cfg.MaxMsgs > 0 || cfg.MaxBytes > 0), warning,
		"discard is new with a limit set: a full journal accepts no records; want old")
	d.check(cfg.Retention != jetstream.LimitsPolicy, warning,
		"retention is %s: readers would remove records; want limits", cfg.Retention)
	d.check(cfg.MaxMsgs > 0 || cfg.MaxMsgsPerSubject > 0, warning,
		"max_msgs is %d, per subject %d: records are removed before their time; want none",
		cfg.MaxMsgs, cfg.MaxMsgsPerSubject)
	d.check(cfg.MaxMsgSize > 0, warning,
		"max_msg_size is %d: larger batches of records are refused; want none", cfg.MaxMsgSize)
	d.check(cfg.Storage != jetstream.FileStorage, warning,
		"storage is %s: records do not survive a restart of the server", cfg.Storage)
	d.check(cfg.AllowRollup || cfg.AllowMsgTTL || cfg.AllowMsgSchedules || cfg.AllowMsgCounter, warning,
		"headers that remove or publish messages are allowed; want them off")
	d.check(cfg.Sealed || cfg.Mirror != nil || cfg.SubjectTransform != nil || cfg.NoAck, warning,
		"is sealed, a mirror, transforms subjects, or acknowledges nothing: no record can be added")
	if cfg.RePublish != nil {
		d.check(true, warning, "republish is set: the targets of all deliveries are published on %s",
			cfg.RePublish.Destination)
	}
	if missing := Subtract(s.Subjects, cfg.Subjects); len(missing) > 0 {
		d.check(true, warning, "does not listen on %s: no record can be added", missing[0])
	}
}

// UnwantedJournal reports a journal that exists although it is not wanted. The broker does not change the journal's
// stream.
func UnwantedJournal(want, found []Spec) []Drift {
	var d drifts
	for _, s := range found {
		if _, wanted := SpecOf(want, s.Stream); s.Kind != Journal || wanted {
			continue
		}
		d.stream = s.Stream
		consequence := "remains until an operator deletes it"
		if s.MaxAge > 0 {
			consequence = "becomes empty within " + levels.FormatDuration(s.MaxAge)
		}
		d.check(true, warning, "DELAY_JOURNAL is off: the earlier journal is left unchanged, and %s", consequence)
	}
	return d.list
}

func maxAgeText(cfg jetstream.StreamConfig) string {
	if cfg.MaxAge == 0 {
		return "none"
	}
	return levels.FormatDuration(cfg.MaxAge)
}
