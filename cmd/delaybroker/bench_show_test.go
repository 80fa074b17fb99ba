package main

import (
	"bytes"
	"strings"
	"testing"

	"delaybroker/broker/bench"
	"delaybroker/cmd/delaybroker/terminal"
)

// The table of bench has the main numbers. With --wide it has all.
func TestBenchShowsTheMainColumns(t *testing.T) {
	report := &bench.Report{
		Plan: bench.Plan{Scenario: bench.Steady, Rounds: 1},
		Results: []bench.Result{{
			Side: bench.Broker, Late: &bench.Spread{P50: 1}, Acks: &bench.Spread{}, Cost: &bench.Cost{Server: 1, Sidecar: 2},
		}},
	}
	for _, test := range []struct {
		wide bool
		want string
	}{
		{false, "SIDE P50 MS P99 MS MAX MS CPU US LOST EARLY TWICE"},
		{true, "SIDE MIN MS P50 MS P90 MS P99 MS P99.9 MS MAX MS ACK P50 MS ACK P99 MS CPU US SERVER US SIDECAR US " +
			"LOST EARLY TWICE"},
	} {
		var out bytes.Buffer
		a := &app{Printer: terminal.Printer{Out: &out}}
		if err := a.showReport(nil, report, test.wide); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[2]), " "); got != test.want {
			t.Errorf("wide %t: got %q, want %q", test.wide, got, test.want)
		}
	}
}
