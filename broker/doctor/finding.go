package doctor

import (
	"fmt"
	"slices"
)

// Severity is how bad a finding is.
type Severity int

// The severities. Skipped is for what was not judged and needs no action. Critical is for what makes messages late,
// refused or lost, now or soon.
const (
	Skipped Severity = iota - 1
	Fine
	Warn
	Critical
)

func (s Severity) String() string { return [...]string{"skipped", "ok", "warn", "critical"}[s-Skipped] }

// MarshalText makes it a word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Finding is what one check has to say.
type Finding struct {
	Check  string   `json:"check"`
	State  Severity `json:"state"`
	Detail string   `json:"detail"`
	Do     string   `json:"do,omitempty"`

	// after names other checks. If one of them has a critical finding, that one is mended first: it is the cause of this
	// finding, or says more about the same.
	after []string
}

// checks are pure functions of the facts, in the order in which a person reads them, with the name that their findings
// get. A check without the facts that it needs says nothing: another check says why they are missing.
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

// CheckNames are the names that findings have, each once.
func CheckNames() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return slices.Compact(names)
}

// Findings are what the checks make of the facts. What only follows from another finding is left out: a person should
// read one thing to do, and not begin with the wrong one. A check to skip is left out first, so that it hides nothing.
func (f Facts) Findings(skip ...string) []Finding {
	var all []Finding
	critical := make(map[string]bool)
	for _, c := range checks {
		if slices.Contains(skip, c.name) {
			continue
		}
		for _, one := range c.check(f) {
			one.Check = c.name
			critical[c.name] = critical[c.name] || one.State == Critical && one.after == nil
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(all, func(one Finding) bool {
		return one.State > Fine && slices.ContainsFunc(one.after, func(check string) bool { return critical[check] })
	})
}

// following makes findings wait for those of other checks.
func following(found []Finding, after ...string) []Finding {
	for i := range found {
		found[i].after = after
	}
	return found
}

func verdict(state Severity, do, format string, args ...any) []Finding {
	return []Finding{{State: state, Detail: fmt.Sprintf(format, args...), Do: do}}
}
