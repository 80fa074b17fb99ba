package doctor

import (
	"fmt"
	"slices"
)

// Severity is the severity of a finding.
type Severity int

// The severities. Skipped means that doctor could not check something, which alone is no fault. Critical means that
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

	// causes has the names of other checks, which may explain this finding. If one of them has a critical finding without
	// causes, this finding is not reported, unless it is Fine or Skipped.
	causes []string
}

// checks has the checks in the order of the report. Two checks may have the same name.
var checks = []struct {
	name  string
	check func(Facts) []Finding
}{
	{"connection", checkConnection}, {"ready", checkReady}, {"settings", checkSettings}, {"rights", checkRights},
	{"versions", checkServer}, {"JetStream", checkJetStream}, {"streams", checkStreams}, {"drift", checkDrift},
	{"seal", checkSeal}, {"seal", checkKeys}, {"storage", checkStorage}, {"lanes", checkOwners},
	{"targets", checkTargets}, {"clock", checkClocks}, {"paused", checkPauses}, {"series", checkSeries},
	{"durability", checkDurability},
	{"replicas", checkReplicas}, {"dead letters", checkDeadLetters}, {"memory", checkMemory}, {"journal", checkJournal},
}

// CheckNames returns the names of all checks, without duplicates.
func CheckNames() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return slices.Compact(names)
}

// Findings runs the checks except those named in skip, and returns their findings without the consequences of critical
// findings.
func (f Facts) Findings(skip ...string) []Finding {
	var findings []Finding
	critical := make(map[string]bool)
	for _, c := range checks {
		if slices.Contains(skip, c.name) {
			continue
		}
		for _, result := range c.check(f) {
			result.Check = c.name
			critical[c.name] = critical[c.name] || result.Severity == Critical && result.causes == nil
			findings = append(findings, result)
		}
	}
	isCritical := func(check string) bool { return critical[check] }
	return slices.DeleteFunc(findings, func(result Finding) bool {
		return result.Severity > Fine && slices.ContainsFunc(result.causes, isCritical)
	})
}

// consequenceOf marks findings as consequences of the findings of other checks.
func consequenceOf(findings []Finding, checks ...string) []Finding {
	for i := range findings {
		findings[i].causes = checks
	}
	return findings
}

func finding(state Severity, advice, format string, args ...any) []Finding {
	return []Finding{{Severity: state, Detail: fmt.Sprintf(format, args...), Advice: advice}}
}
