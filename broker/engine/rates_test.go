package engine

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/levels"
)

// TestDueAtItsRate checks the step of a due message with a rate: the home may be this instance's or another's, and may
// have refused the message.
func TestDueAtItsRate(t *testing.T) {
	limits := deliver.Limits{ByTarget: deliver.Rates{{Pattern: "slow.>", Value: 1}}}
	for _, tt := range []struct {
		name    string
		ladder  string
		target  string
		works   bool
		refused string
		want    string
	}{
		{"another instance has the home", "3s 1m", "slow.x", false, "", "hop into 3s"},
		{"this instance has the home", "3s 1m", "slow.x", true, "", "fire"},
		{"without a rate", "3s 1m", "quick", false, "", "fire"},
		{"the home has refused the message", "3s 1m", "slow.x", false, "3s", "fire"},
		{"another level has refused the message", "3s 1m", "slow.x", false, "1m", "hop into 3s"},
		{"no level is short enough", "10s 1m", "slow.x", false, "", "fire"},
	} {
		ladder := mustLadder(t, tt.ladder)
		p := plan{kind: plainLane{}, ladder: ladder, limits: limits, homes: homesOf(ladder)}
		works := func(levels.Level) bool { return tt.works }
		f := &flight{refusedBy: tt.refused, request: message.Request{Target: tt.target, Due: after(-time.Second)}}
		m := moment{now: epoch, proven: true, pauses: new(pause.List), works: works}
		if got := nextStep(p, m, f).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestHomesAreSpread: each bucket has one home, and every short level is a home.
func TestHomesAreSpread(t *testing.T) {
	all := deliver.Rates{{Pattern: ">", Value: 1}}
	p := plan{homes: homesOf(mustLadder(t, "1s 3s 5s 7s 1m")), limits: deliver.Limits{ByTarget: all, ByKey: all}}
	seen := make(map[string]int)
	for i := range 300 {
		home, _ := p.home(message.Request{Target: fmt.Sprint("t.", i)})
		seen[home.Name]++
	}
	if len(seen) != 3 || seen["1s"] < 50 || seen["3s"] < 50 || seen["5s"] < 50 {
		t.Errorf("300 targets have these homes: %v, want about 100 each of 1s, 3s and 5s", seen)
	}
	a, _ := p.home(message.Request{Target: "t.1", RateKey: "k"})
	b, _ := p.home(message.Request{Target: "t.2", RateKey: "k"})
	if a != b {
		t.Errorf("messages with one key have the homes %s and %s", a.Name, b.Name)
	}
}
