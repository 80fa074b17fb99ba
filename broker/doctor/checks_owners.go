package doctor

import (
	"cmp"
	"fmt"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// lateWarn is the time by which a message may be overdue without a warning.
const lateWarn = 10 * time.Second

// maxUnknown is the maximum number of lanes named of those that cannot be judged.
const maxUnknown = 3

// checkOwners looks for lanes without a reader, and for lanes that are read too slowly.
func checkOwners(f Facts) []Finding {
	if f.All == nil || len(f.Found) == 0 {
		return nil
	}
	var unread, stopped, unknown, late, newer []string
	lanes := 0
	for _, l := range f.lanes.Lanes {
		if l.State == inspect.Newer { // see checkState
			continue
		}
		owner := l.Owner
		if owner == "" && l.Error != "" && (l.State == inspect.Serving || l.State == inspect.Retiring) {
			owner = inspect.OwnerUnknown // the request was refused, or there was no answer
		}
		if owner != "" {
			lanes++
		}
		switch owner {
		case inspect.OwnerNobody:
			unread = append(unread, l.Stream)
		case inspect.OwnerStopped:
			stopped = append(stopped, fmt.Sprintf("%s of %s", l.Stream, l.Instance))
		case inspect.OwnerUnknown:
			unknown = append(unknown, l.Stream)
		}
		if l.State == inspect.TooNew {
			newer = append(newer, fmt.Sprintf("%s of %s", l.Stream, cmp.Or(l.Instance, "nobody")))
		}
		if l.Overdue >= lateWarn.Seconds() {
			late = append(late, fmt.Sprintf("%s by %s", l.Stream, text.Seconds(l.Overdue)))
		}
	}
	all := f.checkDouble()
	switch {
	case len(unread) > 0 && len(unread) == lanes: // a fault of the streams may keep a broker from starting
		all = append(all, following(verdict(Critical, "start a broker: delaybroker serve",
			"no broker reads any of the %d lanes", lanes), "JetStream", "streams", "drift", "seal")...)
	case len(unread) > 0:
		all = append(all, verdict(Critical, "restart a broker: streams made after its start are not read",
			"no broker reads %s", text.Few(unread))...)
	}
	if len(stopped) > 0 {
		all = append(all, following(verdict(Critical,
			"look at the log of that instance; a restart does not help",
			"their instance cannot read them at the moment: %s", text.Few(stopped)),
			"JetStream", "streams", "storage", "rights")...)
	}
	if len(newer) > 0 {
		all = append(all, verdict(Critical, "run a broker of the version that wrote the messages: finish the upgrade",
			"their owner cannot read what a newer broker wrote: %s", text.Few(newer))...)
	}
	if len(late) > 0 {
		all = append(all, following(verdict(Warn,
			"look at the broker's log: a target, a stream or the broker is behind",
			"late: %s", text.Few(late)), "JetStream", "streams", "storage", "rights", "lanes")...)
	}
	if all != nil {
		return all
	}
	detail := fmt.Sprintf("%d lanes, %d messages pending", lanes, f.lanes.Totals.Pending)
	if len(unknown) > 0 {
		why := "no instance answers for it"
		if f.instances.Refused != nil {
			why = fmt.Sprintf("this user may not ask: %v", f.instances.Refused)
		}
		which := text.Few(unknown)
		if len(unknown) > maxUnknown {
			which = fmt.Sprintf("%d of them", len(unknown))
		}
		detail += fmt.Sprintf("; whether somebody reads %s is not known, as %s", which, why)
	}
	return verdict(Fine, "", "%s", detail)
}

// checkDouble looks for two instances that deliver from the same lanes. To coordinate, both must be configured for
// several instances, and each must accept the seals of the other.
func (f Facts) checkDouble() []Finding {
	one, other, lanes := f.instances.Double()
	if len(lanes) == 0 {
		return nil
	}
	do := "give both the same DELAY_SECRET: neither believes what the other writes"
	switch {
	case one.Alone && other.Alone:
		do = "restart both with DELAY_MAX_OWNERS=3: by their settings, each is the only one"
	case one.Alone || other.Alone:
		alone := one
		if other.Alone {
			alone = other
		}
		do = fmt.Sprintf("restart %s with DELAY_MAX_OWNERS=3: by its settings, it is the only one",
			text.Printable(alone.Instance, maxDetail))
	}
	return verdict(Critical, do, "%s and %s both deliver from %s: every message comes twice",
		text.Printable(one.Instance, maxDetail), text.Printable(other.Instance, maxDetail), text.Few(lanes))
}
