package doctor

import (
	"fmt"

	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
	"delaybroker/levels"
)

// checkJournal reports nothing if the stream of the journal does not exist.
func checkJournal(f Facts) []Finding {
	spec, ok := streams.SpecOfKind(f.Found, streams.Journal)
	if !ok {
		return nil
	}
	stream := spec.Stream
	info := f.Infos[stream]
	retention, limit := levels.FormatDuration(info.Config.MaxAge), ""
	if info.Config.MaxBytes > 0 {
		limit = fmt.Sprintf(" of %d", info.Config.MaxBytes)
	}
	var findings []Finding
	running := f.instances.Names(func(stats.InstanceStatus) bool { return true })
	withoutJournal := f.instances.WithoutJournal()
	switch {
	case len(running) > 0 && len(withoutJournal) == len(running):
		findings = finding(Fine, "nats stream rm "+stream+", or wait until the stream is empty",
			"no instance keeps a journal; the records in %s expire within %s", stream, retention)
	case len(withoutJournal) > 0:
		findings = finding(Warn, "start these instances with the same DELAY_JOURNAL as the others",
			"the journal lacks the deliveries of these instances: %s", text.ShortList(withoutJournal))
	}
	age := info.TimeStamp.Sub(info.State.FirstTime)
	switch {
	case inspect.IsFullOfBytes(info) && info.Config.MaxAge > 0 && age < info.Config.MaxAge:
		findings = append(findings, finding(Warn, "raise DELAY_JOURNAL_BYTES, or shorten DELAY_JOURNAL",
			"the journal is full, and has the records of the last %s instead of %s", text.Span(age), retention)...)
	case len(findings) == 0:
		findings = finding(Fine, "", "kept for %s, %d%s bytes", retention, info.State.Bytes, limit)
	}
	return findings
}
