package inspect

import (
	"fmt"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

// checkPauses tells what is paused, which is no fault, and finds brokers that know nothing of it and deliver all the
// same. While nothing is paused it says nothing.
func checkPauses(f Facts) []Finding {
	const name = "paused"
	if n := len(f.lanes.unopened.Present()); n > 0 {
		return verdict(name, Critical, "set DELAY_SECRET to what the brokers have, or start a broker, which holds them",
			"the list of what is paused cannot be opened, and names %d patterns: its secret is not named here", n)
	}
	if f.all == nil || len(f.lanes.Paused) == 0 {
		return nil
	}
	if older := f.instances.names(func(a stats.Answer) bool { return a.Pauses == nil }); len(older) > 0 {
		return verdict(name, Critical, "upgrade it, or stop it until nothing is paused",
			"an older broker runs that delivers to paused targets: %s", few(older))
	}
	var all []string
	for _, p := range f.lanes.Paused {
		all = append(all, fmt.Sprintf("%s since %s", p.Pattern, Second(p.Since)))
	}
	var unproven []string
	for _, p := range f.lanes.Paused {
		if p.Unproven {
			unproven = append(unproven, p.Pattern)
		}
	}
	if len(unproven) > 0 {
		return verdict(name, Warn, "delaybroker pause those that should be, and delaybroker resume the others",
			"held, since a list names them whose secret is gone: %s", few(unproven))
	}
	waiting := uint64(0)
	for _, l := range f.lanes.Lanes {
		if l.Kind == streams.Paused {
			waiting = l.Pending
		}
	}
	return verdict(name, Fine, "", "by an operator: %s; %d messages wait", few(all), waiting)
}
