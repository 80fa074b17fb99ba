package inspect

import "fmt"

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
}

// checks are pure functions of the facts, in the order in which a person reads them. A check without
// the facts that it needs says nothing: another check says why they are missing.
var checks = []func(Facts) []Finding{
	checkConnection, checkReady, checkRights, checkServer, checkJetStream, checkStreams, checkDrift, checkSeal,
	checkStorage, checkOwners, checkClocks, checkPauses, checkDurability, checkDeadLetters, checkMemory,
}

// CheckNames are what findings are filed under.
func CheckNames() []string {
	return []string{
		"connection", "ready", "rights", "versions", "JetStream", "streams", "drift", "seal", "storage",
		"lanes", "clock", "paused", "durability", "dead letters", "memory",
	}
}

// Findings are what the checks make of the facts.
func (f Facts) Findings() []Finding {
	var all []Finding
	for _, check := range checks {
		all = append(all, check(f)...)
	}
	return all
}

func verdict(check string, state Severity, do, format string, args ...any) []Finding {
	return []Finding{{Check: check, State: state, Detail: fmt.Sprintf(format, args...), Do: do}}
}
