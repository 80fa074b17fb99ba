package doctor

import (
	"fmt"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkPauses reports the paused targets. A pause is a fault if the secret that sealed the list of pauses is lost or
// not set here. Without a pause checkPauses reports nothing.
func checkPauses(f Facts) []Finding {
	if n := len(f.lanes.Unopened.Present()); n > 0 {
		return finding(Critical,
			"set DELAY_SECRET to the brokers' value; if the secret is lost, restart a broker: it stores the list again,"+
				" and these targets stay paused",
			"the list of pauses, with %d patterns, is sealed with a secret that is not set here", n)
	}
	if f.Infos == nil || len(f.lanes.Paused) == 0 {
		return nil
	}
	var paused, unproven []string
	for _, p := range f.lanes.Paused {
		paused = append(paused, fmt.Sprintf("%s since %s", p.Pattern, text.ShortMoment(p.Since)))
		if p.Unproven {
			unproven = append(unproven, p.Pattern)
		}
	}
	if len(unproven) > 0 {
		return finding(Warn, "run delaybroker pause for the targets to keep paused, and delaybroker resume for the others",
			"paused by a list whose secret is lost: %s", text.ShortList(unproven))
	}
	waiting := uint64(0)
	for _, l := range f.lanes.Lanes {
		if l.Kind == streams.Paused {
			waiting = l.Pending
		}
	}
	return finding(Fine, "", "by an operator: %s; %s", text.ShortList(paused),
		english.Plural(int(waiting), "message waits", "messages wait"))
}
