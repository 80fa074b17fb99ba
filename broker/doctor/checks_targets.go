package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

// unreachableAfter is the minimum duration of a reported failure. A shorter failure may be a restart of the consumer.
const unreachableAfter = time.Minute

// checkTargets looks for unreachable targets with messages in retry lanes.
func checkTargets(f Facts) []Finding {
	if f.Infos == nil {
		return nil
	}
	var findings []Finding
	reported := make(map[string]bool) // by target
	for _, r := range f.retrying {
		advice, duration := f.adviceFor(r), r.LastFailure.Sub(r.FirstFailure)
		if advice == "" || duration < unreachableAfter || reported[r.Target] {
			continue
		}
		reported[r.Target] = true
		findings = append(findings, finding(Warn, advice, "%s has been failing for %s, attempt %d of %d: %s",
			text.Printable(r.Target, maxDetail), text.Span(duration), r.Attempts, r.AllowedRefusals,
			text.Printable(r.LastError, maxDetail))...)
	}
	if findings == nil {
		return finding(Fine, "", "no unreachable target is known")
	}
	return findings
}

// adviceFor returns the advice for an unreachable target, or "" for any other failure.
func (f Facts) adviceFor(r message.Request) (advice string) {
	target := text.Printable(r.Target, maxDetail)
	switch {
	case strings.HasPrefix(r.LastError, deliver.NobodyListens):
		return "start the consumer of " + target
	case strings.HasPrefix(r.LastError, deliver.NotAllowed):
		return "grant the broker's user permission to publish to " + target
	case strings.HasPrefix(r.LastError, deliver.UnknownListener):
		return "grant the broker's user permission to list streams, or send to " + target + " in mode core"
	case strings.HasPrefix(r.LastError, deliver.NoStream):
		for _, name := range slices.Sorted(maps.Keys(f.Infos)) {
			if overlap(f.Infos[name].Config.Subjects, []string{r.Target}) != "" {
				return "check the stream " + name + ", which does not acknowledge"
			}
		}
		return "create a stream for " + target
	}
	return ""
}
