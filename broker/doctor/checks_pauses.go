package doctor

import (
	"fmt"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// checkPauses reports paused targets, which are no fault, and brokers that do not have the list of pauses and deliver
// to those targets all the same. Without a pause it reports nothing.
func checkPauses(f Facts) []Finding {
	if n := len(f.lanes.Unopened.Present()); n > 0 {
		return verdict(Critical, "set DELAY_SECRET to what the brokers have, or start a broker, which holds them",
			"the list of what is paused cannot be opened, and names %d patterns: its secret is not named here", n)
	}
	if f.All == nil || len(f.lanes.Paused) == 0 {
		return nil
	}
	if older := f.instances.Names(func(a stats.Answer) bool { return a.Pauses == nil }); len(older) > 0 {
		return verdict(Critical, "upgrade it, or stop it until nothing is paused",
			"an older broker runs that delivers to paused targets: %s", text.Few(older))
	}
	var all, unproven []string
	for _, p := range f.lanes.Paused {
		all = append(all, fmt.Sprintf("%s since %s", p.Pattern, text.Second(p.Since)))
		if p.Unproven {
			unproven = append(unproven, p.Pattern)
		}
	}
	if len(unproven) > 0 {
		return verdict(Warn, "delaybroker pause those that should be, and delaybroker resume the others",
			"held, since a list names them whose secret is gone: %s", text.Few(unproven))
	}
	waiting := uint64(0)
	for _, l := range f.lanes.Lanes {
		if l.Kind == streams.Paused {
			waiting = l.Pending
		}
	}
	return verdict(Fine, "", "by an operator: %s; %d messages wait", text.Few(all), waiting)
}
