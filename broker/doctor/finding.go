package doctor

import (
	"fmt"
	"slices"
)

// Severity is the severity of a finding.
type Severity int

// The severities. Skipped means that a check could not judge, and that no action is needed. Critical means that
// messages are late, refused or lost, now or soon.
const (
	Skipped Severity = iota - 1
	Fine
	Warn
	Critical
)

func (s Severity) String() string { return [...]string{"skipped", "ok", "warn", "critical"}[s-Skipped] }

// MarshalText encodes the severity as a string.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Finding is a result of one check.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"state"`
	Detail   string   `json:"detail"`
	Advice   string   `json:"do,omitempty"`

	// causes has the names of other checks. If one of these checks has a critical finding, that finding is the cause of
	// this one or has more detail, and this finding is left out.
	causes []string
}

// checks has the checks in reading order, each with the name of its findings. A check is a pure function of the facts.
// A check whose facts are missing reports nothing, because another check reports why the facts are missing.
var checks = []struct {
	name  string
	check func(Facts) []Finding
}{
	{"connection", checkConnection}, {"ready", checkReady}, {"settings", checkSettings}, {"rights", checkRights},
	{"versions", checkServer}, {"JetStream", checkJetStream}, {"streams", checkStreams}, {"drift", checkDrift},
	{"seal", checkSeal}, {"seal", checkKeys}, {"storage", checkStorage}, {"lanes", checkOwners},
	{"targets", checkTargets}, {"clock", checkClocks}, {"paused", checkPauses}, {"durability", checkDurability},
	{"dead letters", checkDeadLetters}, {"memory", checkMemory}, {"journal", checkJournal},
}

// CheckNames returns the names of all checks, without duplicates.
func CheckNames() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return slices.Compact(names)
}

// Findings runs the checks. It leaves out findings that are only consequences of another finding, so that an engineer
// reads one piece of advice. Findings does not run the checks in skip, so they suppress no findings of other checks.
func (f Facts) Findings(skip ...string) []Finding {
	var all []Finding
	critical := make(map[string]bool)
	for _, c := range checks {
		if slices.Contains(skip, c.name) {
			continue
		}
		for _, one := range c.check(f) {
			one.Check = c.name
			critical[c.name] = critical[c.name] || one.Severity == Critical && one.causes == nil
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(all, func(one Finding) bool {
		return one.Severity > Fine && slices.ContainsFunc(one.causes, func(check string) bool { return critical[check] })
	})
}

// consequenceOf marks findings as consequences of the findings of other checks.
func consequenceOf(found []Finding, after ...string) []Finding {
	for i := range found {
		found[i].causes = after
	}
	return found
}

func finding(state Severity, do, format string, args ...any) []Finding {
	return []Finding{{Severity: state, Detail: fmt.Sprintf(format, args...), Advice: do}}
}
