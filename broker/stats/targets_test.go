package stats_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"delaybroker/broker/stats"
)

func TestTargetsSince(t *testing.T) {
	before := []stats.TargetCount{{"a", "", 10, 1}, {"b.>", "b.>", 5, 0}}
	now := []stats.TargetCount{{"a", "", 30, 2}, {"b.>", "b.>", 5, 0}, {"new", "", 4, 0}}
	const want = `[{"target":"a","delivered":30,"refused":2,"delivered_per_second":2,"refused_per_second":0.1},` +
		`{"target":"b.\u003e","rate":"b.\u003e","delivered":5,"refused":0,"delivered_per_second":0,"refused_per_second":0},` +
		`{"target":"new","delivered":4,"refused":0,"delivered_per_second":0.4,"refused_per_second":0}]`
	if got, _ := json.Marshal(stats.TargetsSince(now, before, 10*time.Second)); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, a := range stats.TargetsSince(now, nil, 0) {
		if a.DeliveredRate != nil || a.RefusedRate != nil {
			t.Errorf("%s has a rate, although no time has passed", a.Target)
		}
	}
}

// TestInheritTargets: the busiest target is the first. The counts of earlier instances add to the totals and not to the
// rates, and a fleet's counts without those of one instance are those of the others.
func TestInheritTargets(t *testing.T) {
	rate := func(n float64) *float64 { return &n }
	own := []stats.TargetAnswer{
		{stats.TargetCount{"a", "", 10, 1}, rate(1), rate(0), nil},
		{stats.TargetCount{"b", "", 10, 0}, rate(3), rate(4), nil},
	}
	earlier := []stats.TargetCount{{"a", "", 5, 2}, {"c", "", 2, 0}}
	const want = `[{"target":"b","delivered":10,"refused":0,"delivered_per_second":3,"refused_per_second":4},` +
		`{"target":"a","delivered":15,"refused":3,"delivered_per_second":1,"refused_per_second":0},` +
		`{"target":"c","delivered":2,"refused":0,"delivered_per_second":null,"refused_per_second":null}]`
	fleet := stats.InheritTargets(earlier, own)
	if got, _ := json.Marshal(fleet); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for range 40 { // a take-over keeps the attempts of the steps before it
		before := fleet
		fleet = stats.InheritTargets(earlier, own)
		stats.ContinueTargets(fleet, before, 10*time.Second)
	}
	if b, c := fleet[0].Recent, fleet[2].Recent; len(b) != 30 || b[0] != 70 || b[29] != 70 || c[29] != 0 {
		t.Errorf("got the attempts %v and %v, want 30 times 70 and 0", b, c)
	}
	huge := make([]stats.TargetAnswer, 100_000)
	for i := range huge {
		huge[i].Target = time.Duration(i).String()
	}
	if got := len(stats.InheritTargets(nil, huge)); got > 1000 {
		t.Errorf("got %d targets, want at most 1000", got)
	}
	all, one := []stats.TargetCount{{"a", "", 15, 3}, {"c", "", 2, 0}}, []stats.TargetCount{{"a", "", 10, 1}}
	rest := stats.SubtractTargets(all, one)
	if !slices.Equal(rest, earlier) {
		t.Errorf("without one instance: got %v, want %v", rest, earlier)
	}
}
