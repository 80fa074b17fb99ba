package doctor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// lateWarn is the minimum lateness of a message for a warning.
const lateWarn = 10 * time.Second

// maxUnknown is the maximum number of lanes with an unknown owner that a finding names.
const maxUnknown = 3

// checkOwners looks for lanes without an owner, with two owners, with an owner that cannot read them, or with overdue
// messages.
func checkOwners(f Facts) []Finding {
	if len(f.Found) == 0 {
		return nil
	}
	var unread, stopped, unknown, late, newer []string
	lanes, cause, remedy := 0, "", "read the log of the owner; a restart does not help"
	for _, l := range f.lanes.Lanes {
		owner := l.Owner
		if owner == "" && l.Error != "" && (l.State == inspect.Serving || l.State == inspect.Retiring) {
			owner = inspect.OwnerUnknown // the server did not answer
		}
		if owner != "" {
			lanes++
		}
		switch owner {
		case inspect.NoOwner:
			unread = append(unread, l.Stream)
		case inspect.OwnerStopped:
			stopped = append(stopped, fmt.Sprintf("%s of %s", l.Stream, l.Instance))
			if l.Fault != nil && cause == "" {
				cause = text.Printable(fmt.Sprintf(": %s: %s", l.Fault.Cause, l.Fault.Detail), maxDetail)
				remedy = text.Printable(l.Fault.Remedy, maxDetail)
			}
		case inspect.OwnerUnknown:
			unknown = append(unknown, l.Stream)
		}
		if l.State == inspect.TooNew {
			newer = append(newer, fmt.Sprintf("%s of %s", l.Stream, cmp.Or(l.Instance, "nobody")))
		}
		if l.Overdue >= lateWarn.Seconds() && owner != inspect.OwnerStopped {
			late = append(late, fmt.Sprintf("%s by %s", l.Stream, text.Seconds(l.Overdue)))
		}
	}
	findings := f.checkConflicts()
	switch {
	case len(unread) > 0 && len(unread) == lanes: // possibly because a broker cannot start: see the checks named below
		findings = append(findings, consequenceOf(finding(Critical, "start a broker: delaybroker serve",
			"no broker reads any of the %d lanes", lanes), "JetStream", "streams", "drift", "seal")...)
	case len(unread) > 0:
		findings = append(findings, finding(Critical,
			"restart a broker: a broker does not read streams created after its start",
			"no broker reads %s", text.ShortList(unread))...)
	}
	if len(stopped) > 0 {
		findings = append(findings, consequenceOf(finding(Critical, remedy, "lanes that their owner cannot work now: %s%s",
			text.ShortList(stopped), cause), "JetStream", "streams", "storage", "rights")...)
	}
	if len(newer) > 0 {
		findings = append(findings, finding(Critical,
			"run a broker of the version that wrote the messages: finish the upgrade",
			"lanes with messages of a newer broker, which their owner cannot read: %s", text.ShortList(newer))...)
	}
	if len(late) > 0 {
		findings = append(findings, consequenceOf(finding(Warn,
			"read the broker's log: a target, a stream or the broker is too slow",
			"overdue: %s", text.ShortList(late)), "JetStream", "streams", "storage", "rights", "lanes")...)
	}
	if findings != nil {
		return findings
	}
	detail := fmt.Sprintf("%d lanes, %s pending", lanes, english.Plural(int(f.lanes.Totals.Pending), "message", ""))
	if len(unknown) > 0 {
		reason := "no instance answered"
		if f.instances.Refusal != nil {
			reason = fmt.Sprintf("this user may not ask the instances: %v", f.instances.Refusal)
		}
		lanesText := text.ShortList(unknown)
		if len(unknown) > maxUnknown {
			lanesText = fmt.Sprintf("%d of them", len(unknown))
		}
		return finding(Skipped, operatorAdvice, "%s; the owner of %s is unknown: %s", detail, lanesText, reason)
	}
	return finding(Fine, "", "%s", detail)
}

// checkConflicts looks for two instances that deliver from the same lanes.
func (f Facts) checkConflicts() []Finding {
	first, second, lanes := f.instances.DoubleOwners()
	if len(lanes) == 0 {
		return nil
	}
	return finding(Critical, "set the same DELAY_SECRET for both: each rejects the other's seals",
		"%s and %s are both active, so each message is delivered twice",
		text.Printable(first.Instance, maxDetail), text.Printable(second.Instance, maxDetail))
}
