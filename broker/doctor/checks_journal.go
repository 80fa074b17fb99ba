package doctor

import (
	"fmt"

	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
	"delaybroker/levels"
)

// checkJournal reports the age of the journal, and the instances that do not write it. Without a journal it reports
// nothing.
func checkJournal(f Facts) []Finding {
	spec, ok := streams.SpecOfKind(f.Found, streams.Journal)
	if !ok {
		return nil
	}
	stream := spec.Stream
	info := f.Infos[stream]
	kept, limit := levels.FormatDuration(info.Config.MaxAge), ""
	if info.Config.MaxBytes > 0 {
		limit = fmt.Sprintf(" of %d", info.Config.MaxBytes)
	}
	var all []Finding
	running, without := f.instances.Names(func(stats.Answer) bool { return true }), f.instances.WithoutJournal()
	switch {
	case len(running) > 0 && len(without) == len(running):
		all = finding(Fine, "nats stream rm "+stream+", or wait until it is empty",
			"no instance keeps a journal; the records in %s expire within %s", stream, kept)
	case len(without) > 0:
		all = finding(Warn, "start them with the same DELAY_JOURNAL as the others",
			"deliveries of instances without a journal are missing: %s", text.Few(without))
	}
	goesBack := info.TimeStamp.Sub(info.State.FirstTime)
	switch {
	case inspect.IsFullOfBytes(info) && info.Config.MaxAge > 0 && goesBack < info.Config.MaxAge:
		all = append(all, finding(Warn, "raise DELAY_JOURNAL_BYTES, or ask for less with DELAY_JOURNAL",
			"the journal is full, and has the last %s instead of %s", text.Span(goesBack), kept)...)
	case len(all) == 0:
		all = finding(Fine, "", "kept for %s, %d%s bytes", kept, info.State.Bytes, limit)
	}
	return all
}
