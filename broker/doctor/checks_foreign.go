package doctor

import (
	"maps"
	"slices"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkForeign looks for streams of other programs that conflict with the broker's streams.
func (f Facts) checkForeign() []Finding {
	var all []Finding
	var foreign []string
	for _, stream := range streams.Compare(f.want, f.Infos).Foreign {
		want, _ := streams.SpecOf(f.want, stream)
		switch _, found := streams.SpecOf(f.Found, stream); {
		case found: // the stream's metadata cannot be read: see checkState
		case overlap(f.Infos[stream].Config.Subjects, want.Subjects) != "":
			all = append(all, finding(Critical, "restore the metadata that delaybroker streams prints",
				"%s has lost its metadata, and the next broker will not start", stream)...)
		default:
			foreign = append(foreign, stream)
		}
	}
	if len(foreign) > 0 {
		all = append(all, finding(Critical, "choose another DELAY_PREFIX",
			"streams of another program have the broker's names: %s", text.Few(foreign))...)
	}
	for _, stream := range slices.Sorted(maps.Keys(f.Infos)) {
		_, wanted := streams.SpecOf(f.want, stream)
		if _, found := streams.SpecOf(f.Found, stream); wanted || found {
			continue
		}
		for _, s := range f.want {
			if subject := overlap(f.Infos[stream].Config.Subjects, s.Subjects); subject != "" {
				all = append(all, finding(Critical, "remove the subject from that stream: nats stream edit "+stream,
					"the stream %s listens on %s, and stores messages meant for %s", stream, subject, s.Stream)...)
				break
			}
		}
	}
	return all
}

// overlap returns the first of the subjects that overlaps with one of the others, or "".
func overlap(subjects, others []string) string {
	for _, subject := range subjects {
		if slices.ContainsFunc(others, func(other string) bool { return message.Overlap(subject, other) }) {
			return subject
		}
	}
	return ""
}

// checkMapping looks for a subject mapping of the account that moves clients' messages to other subjects. No stream
// shows such a mapping.
func (f Facts) checkMapping() []Finding {
	if f.trial.mappedTo == "" {
		return nil
	}
	return finding(Critical, "remove the mapping of "+f.trial.subject+" from the account",
		"messages on %s are mapped to %s, and do not reach the broker's stream", f.trial.subject,
		text.Printable(f.trial.mappedTo, maxDetail))
}

// checkSchedules looks for other streams on the subjects of schedules (DELAY_SCHEDULES). Such a stream and the broker
// would both answer a client's publish. If the stream allows schedules, the server fires the schedules too.
func (f Facts) checkSchedules() []Finding {
	if f.Config.Schedules == nil {
		return nil
	}
	var all []Finding
	for _, stream := range slices.Sorted(maps.Keys(f.Infos)) {
		cfg := f.Infos[stream].Config
		subject := overlap(cfg.Subjects, f.Config.Schedules.Subjects())
		switch {
		case subject == "":
		case cfg.AllowMsgSchedules:
			all = append(all, finding(Critical,
				"run delaybroker schedules import --stream "+stream+", then remove "+subject+" from that stream",
				"schedules on %s fire twice: from the broker, and from the stream %s", subject, stream)...)
		default:
			all = append(all, finding(Critical, "remove the subject from that stream: nats stream edit "+stream,
				"the stream %s listens on %s, a subject of DELAY_SCHEDULES, and refuses schedules", stream, subject)...)
		}
	}
	return all
}
