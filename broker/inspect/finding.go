package inspect

import (
	"fmt"
	"slices"
)

// Severity is how bad a finding is.
type Severity int

// The severities. Critical is for what makes messages late, refused or lost, now or soon.
const (
	Fine Severity = iota
	Warn
	Critical
)

func (s Severity) String() string { return [...]string{"ok", "warn", "critical"}[s] }

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

// checks are pure functions of the facts, in the order in which a person reads them. A check without the facts that it
// needs says nothing: another check says why they are missing.
var checks = []func(Facts) []Finding{
	checkConnection, checkReady, checkSettings, checkRights, checkServer, checkJetStream, checkStreams, checkDrift,
	checkSeal, checkKeys, checkStorage, checkOwners, checkTargets, checkClocks, checkPauses, checkDurability,
	checkDeadLetters, checkMemory, checkJournal,
}

// CheckNames are what findings are filed under.
func CheckNames() []string {
	return []string{
		"connection", "ready", "settings", "rights", "versions", "JetStream", "streams", "drift", "seal", "storage",
		"lanes", "targets", "clock", "paused", "durability", "dead letters", "memory",
		"journal",
	}
}

// Findings are what the checks make of the facts. What only follows from another finding is left out: a person should
// read one thing to do, and not begin with the wrong one. A finding of a check to skip is left out first, so that it
// hides nothing.
func (f Facts) Findings(skip ...string) []Finding {
	var all []Finding
	for _, check := range checks {
		all = append(all, check(f)...)
	}
	all = slices.DeleteFunc(all, func(one Finding) bool { return slices.Contains(skip, one.Check) })
	critical := make(map[string]bool)
	for _, one := range all {
		critical[one.Check] = critical[one.Check] || one.State == Critical && one.after == nil
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

func verdict(check string, state Severity, do, format string, args ...any) []Finding {
	return []Finding{{Check: check, State: state, Detail: fmt.Sprintf(format, args...), Do: do}}
}
