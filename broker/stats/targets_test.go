package stats_test

import (
	"encoding/json"
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

// TestAddTargets: the busiest target is the first. An instance with unknown rates does not reduce the rates of the
// others. Of a report with too many targets, only the first maxTargets count.
func TestAddTargets(t *testing.T) {
	rate := func(n float64) *float64 { return &n }
	one := []stats.TargetAnswer{
		{stats.TargetCount{"a", "", 10, 1}, rate(1), rate(0)}, {stats.TargetCount{"b", "", 10, 0}, rate(3), rate(4)},
		{stats.TargetCount{"c", "c", 1, 0}, nil, nil},
	}
	other := []stats.TargetAnswer{
		{stats.TargetCount{"a", "", 5, 2}, rate(0.5), rate(0)}, {stats.TargetCount{"b", "", 1, 0}, nil, nil},
		{stats.TargetCount{"c", "", 2, 0}, nil, nil},
	}
	const want = `[{"target":"b","delivered":11,"refused":0,"delivered_per_second":3,"refused_per_second":4},` +
		`{"target":"a","delivered":15,"refused":3,"delivered_per_second":1.5,"refused_per_second":0},` +
		`{"target":"c","delivered":2,"refused":0,"delivered_per_second":null,"refused_per_second":null},` +
		`{"target":"c","rate":"c","delivered":1,"refused":0,"delivered_per_second":null,"refused_per_second":null}]`
	if got, _ := json.Marshal(stats.AddTargets(one, other)); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	huge := make([]stats.TargetAnswer, 100_000)
	for i := range huge {
		huge[i].Target = time.Duration(i).String()
	}
	if got := len(stats.AddTargets(huge)); got > 1000 {
		t.Errorf("AddTargets took %d targets of one instance, want at most 1000", got)
	}
}
