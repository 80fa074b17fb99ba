package doctor

import (
	"maps"
	"slices"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkForeign looks for streams that are not marked as the broker's and conflict with its streams: streams of other
// programs, and streams of the broker that have lost their metadata.
func (f Facts) checkForeign() []Finding {
	var findings []Finding
	var foreign []string
	for _, stream := range streams.Compare(f.want, f.Infos).ForeignStreams {
		want, _ := streams.SpecOf(f.want, stream)
		switch _, found := streams.SpecOf(f.Found, stream); {
		case found: // a stream of the broker; checkState reports invalid metadata
		case message.FirstOverlap(f.Infos[stream].Config.Subjects, want.Subjects) != "":
			findings = append(findings, finding(Critical, "restore its metadata, as printed by the command: delaybroker streams",
				"%s has lost its metadata, so no broker can start", stream)...)
		default:
			foreign = append(foreign, stream)
		}
	}
	if len(foreign) > 0 {
		findings = append(findings, finding(Critical, "choose another DELAY_PREFIX",
			"streams of another program have the names of the broker's streams: %s", text.ShortList(foreign))...)
	}
	for _, stream := range slices.Sorted(maps.Keys(f.Infos)) {
		_, wanted := streams.SpecOf(f.want, stream)
		if _, found := streams.SpecOf(f.Found, stream); wanted || found {
			continue
		}
		for _, s := range f.want {
			if subject := message.FirstOverlap(f.Infos[stream].Config.Subjects, s.Subjects); subject != "" {
				findings = append(findings, finding(Critical, "remove the subject from that stream: nats stream edit "+stream,
					"the stream %s listens on %s, and stores messages meant for %s", stream, subject, s.Stream)...)
				break
			}
		}
	}
	return findings
}

// checkMapping looks for a subject mapping of the account that moves clients' messages to other subjects.
func (f Facts) checkMapping() []Finding {
	if f.trial.mappedTo == "" {
		return nil
	}
	return finding(Critical, "remove the mapping of "+f.trial.subject+" from the account",
		"messages on %s are mapped to %s, and do not reach the broker's stream", f.trial.subject,
		text.Printable(f.trial.mappedTo, maxDetail))
}

// checkSchedules looks for streams that listen on the subjects of schedules (DELAY_SCHEDULES). Such a stream answers a
// client's publish in addition to the broker. If the stream allows schedules, the server fires the schedules too.
func (f Facts) checkSchedules() []Finding {
	if f.Config.Schedules == nil {
		return nil
	}
	var findings []Finding
	for _, stream := range slices.Sorted(maps.Keys(f.Infos)) {
		cfg := f.Infos[stream].Config
		subject := message.FirstOverlap(cfg.Subjects, f.Config.Schedules.Subjects())
		switch {
		case subject == "":
		case cfg.AllowMsgSchedules:
			findings = append(findings, finding(Critical,
				"remove "+subject+" from that stream: nats stream edit "+stream+
					"; the schedules stored in it still fire from there",
				"schedules on %s fire twice: from the broker, and from the stream %s", subject, stream)...)
		default:
			findings = append(findings, finding(Critical, "remove the subject from that stream: nats stream edit "+stream,
				"the stream %s listens on %s, a subject of DELAY_SCHEDULES, and refuses schedules", stream, subject)...)
		}
	}
	return findings
}
