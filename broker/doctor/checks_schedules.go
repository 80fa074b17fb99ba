package doctor

import (
	"maps"
	"slices"
)

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
