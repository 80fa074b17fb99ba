package inspect

import (
	"fmt"

	"delaybroker/broker/figures"
	"delaybroker/broker/layout"
)

// checkPauses tells what is paused, which is no fault, and finds brokers that know nothing of it and deliver all the
// same. While nothing is paused it says nothing.
func checkPauses(f Facts) []Finding {
	const name = "paused"
	if f.all == nil || len(f.lanes.Paused) == 0 {
		return nil
	}
	if older := f.instances.names(func(a figures.Answer) bool { return a.Pauses == nil }); len(older) > 0 {
		return verdict(name, Critical, "upgrade it, or stop it until nothing is paused",
			"an older broker runs that delivers to paused targets: %s", few(older))
	}
	var all []string
	for _, p := range f.lanes.Paused {
		all = append(all, fmt.Sprintf("%s since %s", p.Pattern, Second(p.Since)))
	}
	waiting := uint64(0)
	for _, l := range f.lanes.Lanes {
		if l.Kind == layout.Paused {
			waiting = l.Pending
		}
	}
	return verdict(name, Fine, "", "by an operator: %s; %d messages wait", few(all), waiting)
}
