package inspect

import (
	"fmt"
	"time"
)

// lateWarn is how long a message may be overdue without a warning.
const lateWarn = 10 * time.Second

// checkOwners looks for lanes that nobody reads, and for those that are read too slowly.
func checkOwners(f Facts) []Finding {
	const name = "lanes"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	var unread, stopped, unknown, late []string
	lanes := 0
	for _, l := range f.lanes.Lanes {
		if l.Owner != "" {
			lanes++
		}
		switch l.Owner {
		case OwnerNobody:
			if l.Instance != "" { // by the table, which keeps those that died until another takes over
				unread = append(unread, fmt.Sprintf("%s (last %s, which does not answer)", l.Stream, l.Instance))
			} else {
				unread = append(unread, l.Stream)
			}
		case OwnerStopped:
			stopped = append(stopped, fmt.Sprintf("%s of %s", l.Stream, l.Instance))
		case OwnerUnknown:
			unknown = append(unknown, l.Stream)
		}
		if l.Overdue >= lateWarn.Seconds() {
			late = append(late, fmt.Sprintf("%s by %s", l.Stream, Seconds(l.Overdue)))
		}
	}
	var all []Finding
	switch {
	case len(unread) > 0 && len(unread) == lanes:
		all = append(all, verdict(name, Critical, "start a broker: delaybroker serve",
			"nobody reads any of the %d lanes", lanes)...)
	case len(unread) > 0:
		all = append(all, verdict(name, Critical, "restart a broker: streams made after its start are not read",
			"nobody reads %s", few(unread))...)
	}
	if len(stopped) > 0 {
		all = append(all, verdict(name, Critical,
			"look at the broker's log and at the streams' leaders; a restart does not help",
			"their instance cannot read them at the moment: %s", few(stopped))...)
	}
	if len(late) > 0 {
		all = append(all, verdict(name, Warn, "look at the broker's log: a target, a stream or the broker is behind",
			"late: %s", few(late))...)
	}
	if all != nil {
		return all
	}
	detail := fmt.Sprintf("%d lanes, %d messages pending", lanes, f.lanes.Totals.Pending)
	if len(unknown) > 0 {
		detail += fmt.Sprintf("; whether somebody reads %s is not known, as this user may not ask: %v",
			few(unknown), f.instances.refused)
	}
	return verdict(name, Fine, "", "%s", detail)
}
