package inspect

import (
	"fmt"
	"slices"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/levels"
)

// checkJournal says how far the journal reaches back, and who does not write it. Where there is none it says nothing.
func checkJournal(f Facts) []Finding {
	const name = "journal"
	i := slices.IndexFunc(f.found, func(s streams.Spec) bool { return s.Kind == streams.Journal })
	if f.all == nil || i < 0 {
		return nil
	}
	stream := f.found[i].Stream
	info := f.all[stream]
	kept, limit := levels.FormatDuration(info.Config.MaxAge), ""
	if info.Config.MaxBytes > 0 {
		limit = fmt.Sprintf(" of %d", info.Config.MaxBytes)
	}
	var all []Finding
	running, without := f.instances.names(func(stats.Answer) bool { return true }), f.instances.withoutJournal()
	switch {
	case len(running) > 0 && len(without) == len(running):
		all = verdict(name, Fine, "nats stream rm "+stream+", or wait until it is empty",
			"no instance keeps one: %s is left as it is, and empties itself within %s", stream, kept)
	case len(without) > 0:
		all = verdict(name, Warn, "start them with the same DELAY_JOURNAL as the others",
			"what some instances deliver is not in it, since they keep none: %s", few(without))
	}
	goesBack := info.TimeStamp.Sub(info.State.FirstTime)
	switch {
	case isFullOfBytes(info) && info.Config.MaxAge > 0 && goesBack < info.Config.MaxAge:
		all = append(all, verdict(name, Warn, "raise DELAY_JOURNAL_BYTES, or ask for less with DELAY_JOURNAL",
			"it is full, and goes back %s of the %s asked for", Span(goesBack), kept)...)
	case len(all) == 0:
		all = verdict(name, Fine, "", "kept for %s, holds %d%s bytes", kept, info.State.Bytes, limit)
	}
	return all
}
