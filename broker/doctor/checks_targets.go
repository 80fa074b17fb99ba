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

// deafFrom is the time after which a failing target is reported; less may be a restart of the consumer.
const deafFrom = time.Minute

// checkTargets looks for targets that cannot be reached, and whose messages are still being retried.
func checkTargets(f Facts) []Finding {
	if f.All == nil {
		return nil
	}
	var all []Finding
	said := make(map[string]bool)
	for _, r := range f.retrying {
		do, lasts := f.reach(r), r.LastFailure.Sub(r.FirstFailure)
		if do == "" || lasts < deafFrom || said[r.Target] {
			continue
		}
		said[r.Target] = true
		all = append(all, verdict(Warn, do, "%s was refused for %s, %d times of %d: %s",
			text.Printable(r.Target, maxDetail), text.Span(lasts), r.Attempts, r.Allowed,
			text.Printable(r.LastError, maxDetail))...)
	}
	if all == nil {
		return verdict(Fine, "", "none is known to be out of reach")
	}
	return all
}

// reach returns the advice for a target without a subscriber. A service that answers with an error needs none.
func (f Facts) reach(r message.Request) (do string) {
	target := text.Printable(r.Target, maxDetail)
	switch {
	case strings.HasPrefix(r.LastError, deliver.NobodyListens):
		return "start what should receive " + target
	case strings.HasPrefix(r.LastError, deliver.NotAllowed):
		return "allow the user that delivers to publish " + target
	case strings.HasPrefix(r.LastError, deliver.NoStream):
		for _, name := range slices.Sorted(maps.Keys(f.All)) {
			if overlap(f.All[name].Config.Subjects, []string{r.Target}) != "" {
				return "look at the stream " + name + ", which does not acknowledge"
			}
		}
		return "make a stream for " + target
	}
	return ""
}
