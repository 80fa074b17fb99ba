package doctor

import (
	"maps"
	"slices"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkForeign looks for streams of others that conflict with ours.
func (f Facts) checkForeign() []Finding {
	var all []Finding
	var foreign []string
	for _, stream := range streams.Compare(f.want, f.All).Foreign {
		want, _ := inspect.SpecOf(f.want, stream)
		switch _, found := inspect.SpecOf(f.Found, stream); {
		case found: // its metadata cannot be read: see checkState
		case overlap(f.All[stream].Config.Subjects, want.Subjects) != "":
			all = append(all, verdict(Critical, "give it the metadata back that delaybroker streams prints",
				"%s has lost its marks, and the next broker does not start", stream)...)
		default:
			foreign = append(foreign, stream)
		}
	}
	if len(foreign) > 0 {
		all = append(all, verdict(Critical, "choose another DELAY_PREFIX",
			"not ours, with our names: %s", text.Few(foreign))...)
	}
	for _, stream := range slices.Sorted(maps.Keys(f.All)) {
		_, wanted := inspect.SpecOf(f.want, stream)
		if _, found := inspect.SpecOf(f.Found, stream); wanted || found {
			continue
		}
		for _, s := range f.want {
			if subject := overlap(f.All[stream].Config.Subjects, s.Subjects); subject != "" {
				all = append(all, verdict(Critical, "take it from that stream: nats stream edit "+stream,
					"the stream %s listens on %s, and takes what is meant for %s", stream, subject, s.Stream)...)
				break
			}
		}
	}
	return all
}

// overlap returns the first of some subjects that overlaps with a subject of others; empty for none.
func overlap(subjects, others []string) string {
	for _, subject := range subjects {
		if slices.ContainsFunc(others, func(other string) bool { return message.Overlap(subject, other) }) {
			return subject
		}
	}
	return ""
}

// checkMapping looks for messages of clients that never reach us: a subject mapping of the account, which no stream
// shows, sends them elsewhere.
func (f Facts) checkMapping() []Finding {
	if f.trial.mapped == "" {
		return nil
	}
	return verdict(Critical, "take the mapping of "+f.trial.from+" out of the account",
		"what is published on %s goes to %s, and not into our stream", f.trial.from,
		text.Printable(f.trial.mapped, maxDetail))
}

// checkSchedules looks for streams on the subjects of schedules (DELAY_SCHEDULES). Both the stream and the broker would
// answer. If the stream allows schedules, the server fires them too.
func (f Facts) checkSchedules() []Finding {
	if f.Config.Schedules == nil {
		return nil
	}
	var all []Finding
	for _, stream := range slices.Sorted(maps.Keys(f.All)) {
		cfg := f.All[stream].Config
		subject := overlap(cfg.Subjects, f.Config.Schedules.Subjects())
		switch {
		case subject == "":
		case cfg.AllowMsgSchedules:
			all = append(all, verdict(Critical,
				"take them over: delaybroker schedules import --stream "+stream+", and take "+subject+" from that stream",
				"what is scheduled on %s fires twice: here, and in the stream %s", subject, stream)...)
		default:
			all = append(all, verdict(Critical, "take it from that stream: nats stream edit "+stream,
				"the stream %s listens on %s, and refuses there what DELAY_SCHEDULES is for", stream, subject)...)
		}
	}
	return all
}
