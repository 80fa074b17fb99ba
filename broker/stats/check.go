package stats

import "delaybroker/broker/text"

// A Check is one part of a probe's answer, as in /readyz.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	Remedy string `json:"do,omitempty"`
}

// FailingChecks returns the failed checks of a probe as text.
func FailingChecks(checks []Check) []string {
	var failing []string
	for _, c := range checks {
		if !c.OK {
			failing = append(failing, text.Printable(c.Name+": "+c.Detail, 300))
		}
	}
	return failing
}
